#include "engine/tool_calls/tool_call_parser.h"

#include <array>
#include <utility>

#include "engine/tool_calls/call_id.h"
#include "engine/tool_calls/readers/call_reader.h"
#include "engine/tool_calls/readers/harmony_call_reader.h"
#include "engine/tool_calls/text/json_escape.h"

namespace vllm {
namespace {

// White space that may be dropped, before or after a call. A longer run is text.
constexpr size_t kMaxHeldSpace = 256;

struct Trigger {
  enum class Place : uint8_t { kAnywhere, kLineStart, kOutputStart };
  std::string_view text;
  Place place = Place::kAnywhere;  // where it counts
};

std::vector<Trigger> TriggersOf(const ToolCallFormat& format) {
  std::vector<Trigger> triggers;
  if (IsHarmony(&format)) {
    triggers.push_back({HarmonyCallReader::kRecipient, Trigger::Place::kOutputStart});
  } else {
    // An object is known to be no call after its first key, so it may be anywhere. A list could be any text.
    const bool is_list = format.is_bare && format.syntax.trigger != "{";
    triggers.push_back({format.syntax.trigger, is_list ? Trigger::Place::kLineStart : Trigger::Place::kAnywhere});
  }
  for (const std::string_view text : ListedTexts(format.more_triggers)) triggers.push_back({text});
  return triggers;
}

}  // namespace

class ToolCallParser::Impl : public CallSink {
 public:
  Impl(const ToolCallFormat& format, std::shared_ptr<const ToolSet> tools, std::string request_id)
      : format_(format),
        tools_(tools != nullptr ? std::move(tools) : std::make_shared<const ToolSet>()),
        request_id_(std::move(request_id)),
        triggers_(TriggersOf(format)) {
    for (const char c : std::string_view(" \t\r\n")) is_plain_[static_cast<unsigned char>(c)] = false;
    for (const Trigger& trigger : triggers_) is_plain_[static_cast<unsigned char>(trigger.text.front())] = false;
  }

  void Feed(std::string_view text, std::vector<ToolCallEvent>& events) {
    events_ = &events;
    num_old_events_ = events.size();
    for (size_t i = 0; i < text.size();) {
      if (reader_ == nullptr && mark_.empty()) {
        size_t end = i;
        while (end < text.size() && is_plain_[static_cast<unsigned char>(text[end])]) ++end;
        if (end > i) {
          AddText(text.substr(i, end - i));
          i = end;
          continue;
        }
      }
      FeedByte(text[i++]);
      while (!replay_.empty()) {
        const char c = replay_.back();
        replay_.pop_back();
        FeedByte(c);
      }
    }
  }

  void Finish(std::vector<ToolCallEvent>& events, bool is_cut) {
    events_ = &events;
    num_old_events_ = events.size();
    if (reader_ != nullptr) {
      const bool is_whole = reader_->Finish();
      const bool is_inside = is_inside_call_;
      const bool is_cut_call = is_cut && (!format_.is_bare || reader_->is_call());
      if (is_inside) {
        BreakCall("the output ends inside the arguments", is_cut);
      } else if (!is_whole && !format_.is_bare) {
        SetError("the output ends inside a call");
      }
      if (is_whole || is_cut_call || is_inside || has_ended_call_) is_after_section_ = true;
      if (!is_whole && !is_cut_call) AddRawText(raw_);
      reader_.reset();
    }
    if (!is_cut) AddRawText(mark_);
    if (!is_after_section_) FlushSpace();
    mark_.clear();
  }

  int32_t num_calls() const { return num_calls_; }
  bool is_inside_call() const { return is_inside_call_; }
  const std::string& error() const { return error_; }

  // CallSink
  void StartCall(std::string_view name, std::string_view id) override {
    ToolCallEvent event;
    event.kind = ToolCallEvent::Kind::kCallStart;
    event.call_index = num_calls_;
    event.name = std::string(name);
    event.id = id.empty() ? MakeCallId(format_.call_ids, request_id_, num_calls_, name) : std::string(id);
    events_->push_back(std::move(event));
    is_inside_call_ = true;
    ++num_calls_;
    raw_.clear();
  }
  void AddArguments(std::string_view json) override {
    if (json.empty()) return;
    EventOf(ToolCallEvent::Kind::kArguments, num_calls_ - 1).text += json;
    raw_.clear();
  }
  void EndCall() override {
    PushCallEnd("");
    raw_.clear();
    has_ended_call_ = true;
  }
  void SetReasoning(bool is_reasoning) override { is_reasoning_ = is_reasoning; }

 private:
  // Returns the last event if it has this kind and is of the current call of Feed, else a new one.
  ToolCallEvent& EventOf(ToolCallEvent::Kind kind, int32_t call_index) {
    const bool can_merge =
        events_->size() > num_old_events_ && events_->back().kind == kind && events_->back().call_index == call_index;
    if (!can_merge) {
      events_->emplace_back();
      events_->back().kind = kind;
      events_->back().call_index = call_index;
    }
    return events_->back();
  }

  void PushCallEnd(std::string error, bool is_cut = false) {
    ToolCallEvent event;
    event.kind = ToolCallEvent::Kind::kCallEnd;
    event.call_index = num_calls_ - 1;
    event.error = std::move(error);
    event.is_cut = is_cut;
    events_->push_back(std::move(event));
    is_inside_call_ = false;
  }

  void SetError(const std::string& why) {
    if (error_.empty()) error_ = "parsing tool call " + std::to_string(num_calls_) + ": " + why;
  }
  void BreakCall(const std::string& why, bool is_cut = false) {
    --num_calls_;  // in the message
    SetError(why);
    ++num_calls_;
    PushCallEnd(why, is_cut);
  }

  // Writes the white space before text.
  void FlushSpace() {
    if (space_.empty()) return;
    std::string space;
    space.swap(space_);
    AppendText(space);
  }
  void AppendText(std::string_view text) {
    const auto kind = is_reasoning_ ? ToolCallEvent::Kind::kReasoning : ToolCallEvent::Kind::kText;
    EventOf(kind, -1).text += text;
  }
  // Adds text that does not begin with white space.
  void AddText(std::string_view text) {
    if (text.empty()) return;
    if (is_after_section_) {
      is_after_section_ = false;
      // Texts before and after calls stay apart.
      bool& has_text = is_reasoning_ ? has_reasoning_ : has_text_;
      if (!has_text) space_.clear();
      if (has_text && space_.empty()) space_ = "\n";
    }
    FlushSpace();
    (is_reasoning_ ? has_reasoning_ : has_text_) = true;
    AppendText(text);
  }
  void AddSpace(char c) {
    if (space_.size() < kMaxHeldSpace) {
      space_ += c;
    } else if (!is_after_section_) {
      FlushSpace();
      space_ += c;
    }
  }
  // Adds any text without looking for triggers.
  void AddRawText(std::string_view text) {
    while (!text.empty()) {
      const size_t num_spaces = std::min(text.find_first_not_of(" \t\r\n"), text.size());
      for (const char c : text.substr(0, num_spaces)) AddSpace(c);
      text.remove_prefix(num_spaces);
      const size_t num_bytes = std::min(text.find_first_of(" \t\r\n"), text.size());
      AddText(text.substr(0, num_bytes));
      text.remove_prefix(num_bytes);
    }
  }

  bool IsAt(Trigger::Place place) const {
    const bool is_first = !has_text_ && !has_reasoning_;
    switch (place) {
      case Trigger::Place::kAnywhere:
        return true;
      case Trigger::Place::kLineStart:
        return is_first || is_after_section_ || space_.find('\n') != std::string::npos;
      case Trigger::Place::kOutputStart:
        return is_first && !is_after_section_;
    }
    return false;
  }

  void FeedByte(char c) {
    if (reader_ == nullptr) {
      FeedText(c);
      return;
    }
    raw_ += c;
    ReadResult result = reader_->Feed(c);
    if (!is_inside_call_ && raw_.size() > kMaxHeldBytes) result = ReadResult::kInvalid;
    switch (result) {
      case ReadResult::kMore:
        return;
      case ReadResult::kClosing:
        raw_.clear();
        has_ended_call_ = true;
        return;
      case ReadResult::kDone:
        EndSection();
        return;
      case ReadResult::kNotPart:
        EndSection();
        // The bytes become text, or the beginning of another section.
        replay_.append(raw_.rbegin(), raw_.rend());
        raw_.clear();
        return;
      case ReadResult::kInvalid:
        RejectByte(c);
        return;
    }
  }

  void RejectByte(char c) {
    std::string why = "expected " + std::string(reader_->expected());
    if (!is_inside_call_ && raw_.size() > kMaxHeldBytes) {
      why = "no name in the first " + std::to_string(kMaxHeldBytes) + " bytes";
    }
    const bool has_ended_call = has_ended_call_;
    EndSection();
    if (is_inside_call_) {
      BreakCall(why);
    } else {
      // Text that is not a call is no error if only the names of tools tell them apart.
      if (!format_.is_bare) SetError(why);
      is_after_section_ = has_ended_call || is_after_section_before_;
    }
    if (!raw_.empty()) raw_.pop_back();
    AddRawText(raw_);
    raw_.clear();
    replay_ += c;
  }

  void EndSection() {
    is_after_section_before_ = is_after_section_at_start_;
    reader_.reset();
    is_after_section_ = true;
    has_ended_call_ = false;
  }

  void StartSection(std::string_view trigger) {
    mark_.clear();
    if (IsHarmony(&format_) && HarmonyCallReader::IsWhole(trigger)) {
      is_after_section_ = true;
      is_reasoning_ = false;
      return;
    }
    is_after_section_at_start_ = is_after_section_;
    raw_ = trigger;
    reader_ = MakeCallReader(format_, trigger, *tools_, *this);
    // Such a trigger ends with the first byte of the calls.
    if (trigger.back() == '{' || trigger.back() == '[') reader_->Feed(trigger.back());
  }

  void FeedText(char c) {
    mark_ += c;
    while (!mark_.empty()) {
      bool is_prefix = false;
      for (const Trigger& trigger : triggers_) {
        if (!trigger.text.starts_with(mark_) || !IsAt(trigger.place)) continue;
        if (trigger.text.size() == mark_.size()) {
          StartSection(trigger.text);
          return;
        }
        is_prefix = true;
      }
      if (is_prefix) return;
      const char first = mark_.front();
      mark_.erase(0, 1);
      if (IsCallSpace(first)) {
        AddSpace(first);
      } else {
        AddText(std::string_view(&first, 1));
      }
    }
  }

  const ToolCallFormat& format_;
  std::shared_ptr<const ToolSet> tools_;
  std::string request_id_;
  std::vector<Trigger> triggers_;
  std::array<bool, 256> is_plain_ = [] {
    std::array<bool, 256> all;
    all.fill(true);
    return all;
  }();  // bytes that neither begin a trigger nor are white space

  std::vector<ToolCallEvent>* events_ = nullptr;  // of the current call of Feed
  size_t num_old_events_ = 0;
  std::unique_ptr<CallReader> reader_;  // inside a section
  std::string mark_;                    // the beginning of a trigger
  std::string space_;                   // white space before mark_
  std::string raw_;                     // bytes of the section since its start, the last call, or the last arguments
  std::string replay_;                  // bytes to read again, in reverse
  bool is_inside_call_ = false;
  bool has_ended_call_ = false;  // in this section
  bool is_after_section_ = false;
  bool is_after_section_at_start_ = false;
  bool is_after_section_before_ = false;
  bool is_reasoning_ = false;
  bool has_text_ = false;
  bool has_reasoning_ = false;
  int32_t num_calls_ = 0;
  std::string error_;
};

ToolCallParser::ToolCallParser(const ToolCallFormat& format, std::shared_ptr<const ToolSet> tools,
                               std::string request_id)
    : impl_(std::make_unique<Impl>(format, std::move(tools), std::move(request_id))) {}
ToolCallParser::~ToolCallParser() = default;
ToolCallParser::ToolCallParser(ToolCallParser&&) noexcept = default;
ToolCallParser& ToolCallParser::operator=(ToolCallParser&&) noexcept = default;

void ToolCallParser::Feed(std::string_view text, std::vector<ToolCallEvent>& events) { impl_->Feed(text, events); }
void ToolCallParser::Finish(std::vector<ToolCallEvent>& events, bool is_cut) { impl_->Finish(events, is_cut); }
int32_t ToolCallParser::num_calls() const { return impl_->num_calls(); }
bool ToolCallParser::is_inside_call() const { return impl_->is_inside_call(); }
const std::string& ToolCallParser::error() const { return impl_->error(); }

ToolCallOutput ParseToolCalls(const ToolCallFormat& format, const std::shared_ptr<const ToolSet>& tools,
                              const std::string& request_id, std::string_view text, bool is_cut) {
  ToolCallParser parser(format, tools, request_id);
  std::vector<ToolCallEvent> events;
  parser.Feed(text, events);
  parser.Finish(events, is_cut);
  ToolCallOutput output;
  output.Add(events);
  output.error = parser.error();
  return output;
}

}  // namespace vllm
