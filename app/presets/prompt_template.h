// PromptTemplate: text with names in braces, such as "Translate to {language}: {input}". {{ and }} are literal braces.
// An immutable value; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

class PromptTemplate {
 public:
  // Throws ConfigError `<where>: <why>` if a brace has no counterpart.
  PromptTemplate(std::string_view text, const std::string& where);

  // Returns the different names, in the order of their first use.
  const std::vector<std::string>& names() const { return names_; }
  bool Uses(std::string_view name) const;
  // Returns the text with each name replaced by its value. REQUIRES: values[i] is the value of names()[i].
  std::string Fill(std::span<const std::string_view> values) const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Part {
    std::string text;
    size_t name_index;  // of the name that follows `text`; kNone: none
  };
  // Returns the index of `name` in names_, and adds it if it is new.
  size_t IndexOf(std::string_view name);

  std::vector<Part> parts_;
  std::vector<std::string> names_;
};

}  // namespace vllm::app
