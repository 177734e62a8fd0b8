#include "app/terminal/type_ahead.h"

#include <utility>

namespace vllm::app {
namespace {

// As many as a terminal keeps for a program that does not read.
constexpr size_t kMaxKeys = 4096;

std::string g_keys;

}  // namespace

void KeepTypedKeys(std::string_view keys) { g_keys += keys.substr(0, kMaxKeys - g_keys.size()); }

std::string TakeTypedKeys() { return std::exchange(g_keys, ""); }

}  // namespace vllm::app
