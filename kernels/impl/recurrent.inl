// The causal convolution and the recurrence of linear attention. Included inside an instruction set's namespace, after
// unroll.inl.

static void CausalConv(const float* const* taps, int64_t num_taps, const float* weight, int64_t weight_stride,
                       const float* bias, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const int lanes = n - i < Vec::kLanes ? static_cast<int>(n - i) : Vec::kLanes;
    Vec sum = bias != nullptr ? Vec::LoadPartial(bias + i, lanes) : Vec::Zero();
    for (int64_t t = 0; t < num_taps; ++t) {
      if (taps[t] == nullptr) continue;
      sum =
          Vec::Fma(Vec::LoadPartial(weight + t * weight_stride + i, lanes), Vec::LoadPartial(taps[t] + i, lanes), sum);
    }
    sum.StorePartial(out + i, lanes);
  }
}

// The sums over key_dim have two chains, of even and of odd rows of S, so that they do not wait for each addition.
//
// Processes the columns [column, column + kVecs * 16) of S for all tokens, so that they stay in L1 from one token to
// the next. `lanes` is the number of columns of the last Vec.
template <int kVecs>
static inline void RecurrenceColumns(const LinearRecurrenceArgs& args, int64_t column, int lanes) {
  const int64_t n = args.value_dim;
  const auto load = [&](const float* p, int j) {
    return j + 1 < kVecs ? Vec::Load(p + j * Vec::kLanes) : Vec::LoadPartial(p + j * Vec::kLanes, lanes);
  };
  const auto store = [&](Vec v, float* p, int j) {
    if (j + 1 < kVecs) {
      v.Store(p + j * Vec::kLanes);
    } else {
      v.StorePartial(p + j * Vec::kLanes, lanes);
    }
  };
  float* const state = args.state + column;
  const int64_t even_dims = args.key_dim / 2 * 2;
  for (int64_t row = 0; row < args.num_rows; ++row) {
    const float* const key = args.key + row * args.key_stride;
    const float* const query = args.query + row * args.key_stride;
    const float* const value = args.value + row * args.value_stride + column;
    const Vec decay = Vec::Set1(args.decay[row * args.gate_stride]);
    const Vec beta = Vec::Set1(args.beta[row * args.gate_stride]);
    Vec u[kVecs];
    Unroll<kVecs>([&](auto j) { u[j] = load(value, j); });
    if (args.delta_rule) {
      Vec sum[2][kVecs];
      Unroll<kVecs>([&](auto j) { sum[0][j] = sum[1][j] = Vec::Zero(); });
      const auto add = [&](int64_t i, auto chain) {
        const Vec k = Vec::Set1(key[i]);
        Unroll<kVecs>([&](auto j) { sum[chain][j] = Vec::Fma(k, load(state + i * n, j), sum[chain][j]); });
      };
      for (int64_t i = 0; i < even_dims; i += 2) Unroll<2>([&](auto chain) { add(i + chain, chain); });
      if (even_dims < args.key_dim) add(even_dims, Int<0>());
      Unroll<kVecs>([&](auto j) { u[j] = Vec::Sub(u[j], Vec::Mul(decay, Vec::Add(sum[0][j], sum[1][j]))); });
    }
    Unroll<kVecs>([&](auto j) { u[j] = Vec::Mul(beta, u[j]); });
    Vec out[2][kVecs];
    Unroll<kVecs>([&](auto j) { out[0][j] = out[1][j] = Vec::Zero(); });
    const auto update = [&](int64_t i, auto chain) {
      const Vec k = Vec::Set1(key[i]);
      const Vec q = Vec::Set1(query[i]);
      Unroll<kVecs>([&](auto j) {
        const Vec s = Vec::Fma(k, u[j], Vec::Mul(decay, load(state + i * n, j)));
        store(s, state + i * n, j);
        out[chain][j] = Vec::Fma(q, s, out[chain][j]);
      });
    };
    for (int64_t i = 0; i < even_dims; i += 2) Unroll<2>([&](auto chain) { update(i + chain, chain); });
    if (even_dims < args.key_dim) update(even_dims, Int<0>());
    if (args.out == nullptr) continue;
    float* const to = args.out + row * args.out_stride + column;
    Unroll<kVecs>([&](auto j) {
      Vec sum = Vec::Add(out[0][j], out[1][j]);
      if (args.skip != 0.0f) sum = Vec::Fma(Vec::Set1(args.skip), load(value, j), sum);
      store(sum, to, j);
    });
  }
}

static void LinearRecurrence(const LinearRecurrenceArgs& args) {
  constexpr int kVecs = 4;
  int64_t column = 0;
  for (; column + kVecs * Vec::kLanes <= args.value_dim; column += kVecs * Vec::kLanes) {
    RecurrenceColumns<kVecs>(args, column, Vec::kLanes);
  }
  for (; column < args.value_dim; column += Vec::kLanes) {
    const int64_t left = args.value_dim - column;
    RecurrenceColumns<1>(args, column, left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes);
  }
}
