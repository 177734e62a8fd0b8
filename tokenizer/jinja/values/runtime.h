// What the builtins of one rendering share. Owned by the call of Render, one thread.
#pragma once

#include <ctime>
#include <memory>
#include <vector>

#include "tokenizer/jinja/values/budget.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

struct Runtime {
  Budget budget;
  std::tm now{};
  // Namespaces can refer to each other in circles and chains: all live until the end and are emptied there.
  std::vector<std::shared_ptr<NamespaceObject>> namespaces;

  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime() {
    for (const auto& space : namespaces) space->attributes.clear();
  }
};

}  // namespace vllm::jinja
