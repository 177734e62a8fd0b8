// Tests which partitions AttentionPlan computes in separate tasks, and that a decode step's attention returns the same
// bits for every plan.
#include "engine/layers/attention/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "engine/layers/attention/attention.h"
#include "kernels/isa/kernels_for.h"

namespace vllm {
namespace {

constexpr int64_t kBlockSize = 16;
constexpr int64_t kBlocks = kernels::kKVPartition / kBlockSize;

using Table = std::vector<int32_t>;

Table Blocks(int32_t first, int64_t count) {
  Table table;
  for (int64_t i = 0; i < count; ++i) table.push_back(first + static_cast<int32_t>(i));
  return table;
}

AttentionPlan PlanFor(const std::vector<AttentionSequence>& sequences, AttentionPlanOptions options = {}) {
  options.block_size = kBlockSize;
  options.max_sequences = 16;
  if (options.max_slots == 0) options.max_slots = 1000;
  options.max_partitions = 1000;
  AttentionPlan plan(options);
  plan.Make(sequences);
  return plan;
}

TEST(AttentionPlanTest, PartitionWithTheSameBlocksIsPlannedOnceForAllRows) {
  Table a = Blocks(1, 3 * kBlocks), b = a, c = a;
  b[2 * kBlocks] = 900;  // in the third partition
  c[kBlocks + 3] = 901;  // in the second partition
  const std::vector<AttentionSequence> sequences = {{0, 1, 3 * kernels::kKVPartition - 1, a.data()},
                                                    {1, 1, 3 * kernels::kKVPartition - 1, b.data()},
                                                    {2, 1, 600, c.data()}};
  const AttentionPlan plan = PlanFor(sequences);
  ASSERT_EQ(plan.partitions().size(), 2u);
  EXPECT_EQ(plan.partitions()[0].partition, 0);
  EXPECT_EQ(plan.partitions()[0].num_rows, 3);
  EXPECT_EQ(plan.partitions()[1].partition, 1);
  EXPECT_EQ(plan.partitions()[1].num_rows, 2);
  ASSERT_NE(plan.slots(2), nullptr);
  EXPECT_GE(plan.slots(2)[0], 0);
  EXPECT_EQ(plan.slots(2)[1], -1);
  EXPECT_EQ(plan.row_of_slot(plan.slots(1)[1])->row, 1);
}

TEST(AttentionPlanTest, PartialLastPartitionIsNotShared) {
  const Table a = Blocks(1, kBlocks);
  const AttentionPlan plan =
      PlanFor({{0, 1, kernels::kKVPartition - 2, a.data()}, {1, 1, kernels::kKVPartition - 2, a.data()}});
  EXPECT_TRUE(plan.partitions().empty());
  EXPECT_EQ(plan.slots(0), nullptr);
}

TEST(AttentionPlanTest, PromptChunksDoNotSharePartitions) {
  const Table a = Blocks(1, 3 * kBlocks);
  const AttentionPlan plan = PlanFor({{0, 2, 600, a.data()}, {2, 1, 600, a.data()}});
  EXPECT_TRUE(plan.partitions().empty());
}

TEST(AttentionPlanTest, WithManyQueriesPerKVHeadOnlyKVLargerThanTheCpuCacheIsShared) {
  const Table a = Blocks(1, 3 * kBlocks);
  const std::vector<AttentionSequence> sequences = {{0, 1, 700, a.data()}, {1, 1, 700, a.data()}};
  EXPECT_TRUE(PlanFor(sequences, {.num_queries_per_kv = 7, .head_bytes_per_token = 256}).partitions().empty());
  EXPECT_EQ(PlanFor(sequences, {.num_queries_per_kv = 7, .head_bytes_per_token = 1 << 20}).partitions().size(), 2u);
  EXPECT_EQ(PlanFor(sequences, {.num_queries_per_kv = 1, .head_bytes_per_token = 256}).partitions().size(), 2u);
}

TEST(AttentionPlanTest, PartitionsOutsideTheWindowAreNotPlanned) {
  const Table a = Blocks(1, 4 * kBlocks);
  const AttentionPlan plan =
      PlanFor({{0, 1, 4 * kernels::kKVPartition - 1, a.data()}, {1, 1, 4 * kernels::kKVPartition - 1, a.data()}},
              {.sliding_window = 300});
  ASSERT_EQ(plan.partitions().size(), 2u);
  EXPECT_EQ(plan.partitions()[0].partition, 2);
}

TEST(AttentionPlanTest, LongSequenceIsSplitIfThreadsWouldWaitForIt) {
  const Table a = Blocks(1, 4 * kBlocks), b = Blocks(1000, 2);
  const std::vector<AttentionSequence> sequences = {{0, 1, 1000, a.data()}, {1, 1, 20, b.data()}};
  EXPECT_TRUE(PlanFor(sequences, {.num_kv_heads = 2, .num_threads = 1}).partitions().empty());
  EXPECT_TRUE(PlanFor(sequences, {.num_kv_heads = 8, .num_threads = 2}).partitions().empty());
  const AttentionPlan plan = PlanFor(sequences, {.num_kv_heads = 2, .num_threads = 4});
  EXPECT_EQ(plan.partitions().size(), 4u);
  EXPECT_EQ(plan.slots(1), nullptr);
}

TEST(AttentionPlanTest, PartitionsBeyondTheSlotCapacityAreNotPlanned) {
  const Table a = Blocks(1, 3 * kBlocks);
  const AttentionPlan plan =
      PlanFor({{0, 1, 700, a.data()}, {1, 1, 700, a.data()}, {2, 1, 700, a.data()}}, {.max_slots = 5});
  EXPECT_EQ(plan.partitions().size(), 1u);
}

// A decode step of one layer: a cache with random K and V, and sequences that share the blocks of random prefixes.
struct Step {
  KVCacheSpec spec;
  kernels::KVDType dtype;
  int64_t block_size, num_queries;
  KVCache cache;
  std::vector<Table> tables;
  std::vector<int64_t> positions;
  std::vector<float> rows;

  Step(std::mt19937& random, int64_t window, kernels::KVDType type, int64_t bs)
      : spec{2, 24, window}, dtype(type), block_size(bs), num_queries(6) {
    const auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    int32_t next = 1;
    for (int64_t s = pick(2, 9); s > 0; --s) {
      positions.push_back(pick(0, 1400));
      Table table;
      if (!tables.empty()) {
        const Table& other = tables[static_cast<size_t>(pick(0, static_cast<int64_t>(tables.size()) - 1))];
        // The last block of a sequence is not shared, because the step writes to it.
        const auto max_blocks = std::min<int64_t>(static_cast<int64_t>(other.size()) - 1, positions.back() / bs);
        table.assign(other.begin(), other.begin() + pick(0, 3) * max_blocks / 3);
      }
      while (static_cast<int64_t>(table.size()) * bs <= positions.back()) table.push_back(next++);
      tables.push_back(table);
    }
    cache = KVCache({.attention = {spec}}, next, bs, type);
    std::normal_distribution<float> normal;
    std::vector<float> key(24), value(24);
    for (int64_t slot = 0; slot < next * bs; ++slot) {
      for (int64_t head = 0; head < spec.num_kv_heads; ++head) {
        for (float& x : key) x = normal(random);
        for (float& x : value) x = normal(random);
        kernels::WriteKV(cache.Layout(0), cache.key(0), cache.value(0), slot, head, key.data(), value.data());
      }
    }
    rows.resize(tables.size() * static_cast<size_t>(Stride()));
    for (float& x : rows) x = normal(random);
  }

  int64_t Stride() const { return (num_queries + 2 * spec.num_kv_heads) * spec.head_dim; }

  // Returns the outputs of sequences [first, end), computed in one step.
  std::vector<float> Run(size_t first, size_t end, int num_threads, bool share, int64_t max_slots) {
    SingleRankCommunicator communicator;
    kernels::ThreadPool threads(num_threads);
    Workspace workspace;
    const StepContext step{&kernels::KernelsFor(kernels::BestIsa()), &threads, &communicator, &workspace};
    Attention attention(step, 0, spec, num_queries, 0.2f);
    AttentionMetadata metadata;
    metadata.partials = kernels::AlignedBuffer(
        static_cast<size_t>(max_slots * num_queries * kernels::PartialFloats(spec.head_dim)) * sizeof(float) + 1);
    AttentionGroup& group = metadata.groups.emplace_back();
    for (size_t s = first; s < end; ++s) {
      const auto row = static_cast<int64_t>(s - first);
      group.sequences.push_back({row, 1, positions[s], tables[s].data()});
      group.slot_mapping.push_back(tables[s].back() * block_size + positions[s] % block_size);
      metadata.rows.push_back({row, positions[s]});
    }
    group.plan = AttentionPlan(
        {block_size, spec.sliding_window, spec.num_kv_heads, num_threads, 16, max_slots, 200, 1, 0, share});
    group.plan.Make(group.sequences);
    const int64_t out_stride = num_queries * spec.head_dim;
    std::vector<float> out((end - first) * static_cast<size_t>(out_stride));
    const float* query = rows.data() + static_cast<int64_t>(first) * Stride();
    const float* key = query + out_stride;
    attention.Forward(metadata, cache, query, key, key + spec.num_kv_heads * spec.head_dim, Stride(), out.data(),
                      out_stride);
    num_planned = group.plan.partitions().size();
    return out;
  }

  size_t num_planned = 0;
};

TEST(AttentionPlanTest, SharingAndSplittingDoNotChangeTheResult) {
  std::mt19937 random(3);
  size_t num_planned = 0;
  for (int round = 0; round < 48; ++round) {
    const int64_t block_sizes[] = {16, 32, 48, 512};
    const kernels::KVDType types[] = {kernels::KVDType::kFloat32, kernels::KVDType::kBFloat16, kernels::KVDType::kInt8};
    Step step(random, round % 3 == 2 ? 64 + 37 * round : 0, types[round % 3], block_sizes[round % 4]);
    std::vector<float> alone;
    for (size_t s = 0; s < step.tables.size(); ++s) {
      const std::vector<float> out = step.Run(s, s + 1, 1, false, 0);
      alone.insert(alone.end(), out.begin(), out.end());
    }
    struct {
      int threads;
      bool share;
      int64_t max_slots;
    } const ways[] = {{1, true, 200}, {3, true, 200}, {3, false, 200}, {1, false, 0}, {4, true, 7}};
    for (const auto& way : ways) {
      const std::vector<float> out = step.Run(0, step.tables.size(), way.threads, way.share, way.max_slots);
      ASSERT_EQ(0, std::memcmp(alone.data(), out.data(), out.size() * sizeof(float))) << round << " " << way.threads;
      num_planned += step.num_planned;
    }
  }
  EXPECT_GT(num_planned, 300u);
}

}  // namespace
}  // namespace vllm
