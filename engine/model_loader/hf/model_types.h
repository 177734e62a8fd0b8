// Groups of values of model_type in config.json. Pure functions; any thread.
#pragma once

#include <string_view>

namespace vllm {

// Qwen2-VL and Qwen2.5-VL. Older files have the fields of the text model in the outer config, newer ones in
// text_config.
inline bool IsQwen2VL(std::string_view model_type) {
  return model_type == "qwen2_vl" || model_type == "qwen2_vl_text" || model_type == "qwen2_5_vl" ||
         model_type == "qwen2_5_vl_text";
}

}  // namespace vllm
