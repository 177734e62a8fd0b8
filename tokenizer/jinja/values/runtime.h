// The state that the builtins of one rendering share. Owned by one call of ChatTemplate::Render or RenderJson and used
// only by its thread.
#pragma once

#include <ctime>
#include <memory>
#include <vector>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

struct Runtime {
  Budget budget;
  std::tm now{};
  // All namespaces of the rendering. They can form cycles and long chains, so the destructor clears each namespace
  // instead of relying on reference counts.
  std::vector<std::shared_ptr<NamespaceObject>> namespaces;

  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime() {
    for (const auto& space : namespaces) space->attributes.clear();
  }
};

}  // namespace vllm::tokenizer::jinja
