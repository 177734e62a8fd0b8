#include "app/markdown/block_renderer.h"

#include <md4c.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "app/markdown/entities.h"
#include "app/markdown/escape_markdown.h"
#include "app/markdown/inline_text.h"

namespace vllm::app {
namespace {

constexpr int kMaxRuleColumns = 40;
constexpr int kMinTextColumns = 8;
// A short line of a table has as many cells as the longest header allows.
constexpr size_t kMaxTableCells = 4096;

// Thrown out of the callbacks.
struct TooComplex {};

constexpr TextStyle kCodeSpanStyle = {.color = TextColor::kCyan};

std::string AttributeText(const MD_ATTRIBUTE& attribute) {
  std::string text;
  for (size_t i = 0; attribute.text != nullptr && attribute.substr_offsets[i] < attribute.size; ++i) {
    const std::string_view part(attribute.text + attribute.substr_offsets[i],
                                attribute.substr_offsets[i + 1] - attribute.substr_offsets[i]);
    text += attribute.substr_types[i] == MD_TEXT_ENTITY ? DecodeEntity(part) : std::string(part);
  }
  return text;
}

class BlockBuilder {
 public:
  BlockBuilder(std::string_view source, const BlockPosition& position, const RenderOptions& options)
      : source_(EscapeForMarkdown(source, added_)), position_(position), options_(options) {
    next_link_ = position.first_link;
  }

  RenderedBlock Run() {
    MD_PARSER parser{};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS |
                   MD_FLAG_LATEXMATHSPANS | MD_FLAG_NOHTML;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) {
      return Guard(self, [&](BlockBuilder& builder) { builder.EnterBlock(type, detail); });
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void* /*detail*/, void* self) {
      return Guard(self, [&](BlockBuilder& builder) { builder.LeaveBlock(type); });
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* self) {
      return Guard(self, [&](BlockBuilder& builder) { builder.EnterSpan(type, detail); });
    };
    parser.leave_span = [](MD_SPANTYPE type, void* /*detail*/, void* self) {
      return Guard(self, [&](BlockBuilder& builder) { builder.LeaveSpan(type); });
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* self) {
      return Guard(self, [&](BlockBuilder& builder) { builder.Text(type, std::string_view(text, size)); });
    };
    const int status = md_parse(source_.data(), static_cast<MD_SIZE>(source_.size()), &parser, this);
    if (exception_) std::rethrow_exception(exception_);
    if (status != 0) throw std::bad_alloc();  // the only failure that md4c reports
    return std::move(result_);
  }

 private:
  struct Container {
    bool is_quote;
    int columns;
    std::string marker;  // of a list item, until its first row
  };
  struct List {
    bool is_ordered;
    uint64_t number;
    char delimiter;
  };
  struct Link {
    size_t begin;
    std::string url;
    std::optional<LinkUri> uri;
  };
  struct CodeLine {
    std::string text;
    size_t source = Row::kNoSource;
    bool is_dropped = false;
  };

  // An exception must not pass through md4c.
  template <typename F>
  static int Guard(void* self, F f) {
    auto& builder = *static_cast<BlockBuilder*>(self);
    try {
      f(builder);
      return 0;
    } catch (...) {
      builder.exception_ = std::current_exception();
      return -1;
    }
  }

  // Returns the offset of `text` in the source of the block, or nullopt for text that md4c has made.
  std::optional<size_t> SourceOf(const char* text) const {
    if (std::less<>()(text, source_.data()) || std::less_equal<>()(source_.data() + source_.size(), text)) {
      return std::nullopt;
    }
    const auto offset = static_cast<size_t>(text - source_.data());
    const auto num_added = std::lower_bound(added_.begin(), added_.end(), offset) - added_.begin();
    return offset - static_cast<size_t>(num_added);
  }
  // Returns true if text without its own offset, at the current place, has been rendered before.
  bool IsDropped() const { return last_end_ < position_.start; }

  TextStyle Style() const {
    if (!options_.has_styles) return {};
    TextStyle style;
    if (code_depth_ > 0) style = kCodeSpanStyle;
    style.bold = strong_depth_ > 0 || heading_level_ > 0 || in_table_header_;
    style.italic = emphasis_depth_ > 0;
    style.underline = (heading_level_ > 0 && heading_level_ <= 2) || (!links_.empty() && links_.back().uri);
    style.strikethrough = strike_depth_ > 0;
    return style;
  }

  void Generate(std::string_view text) { inline_.AddGenerated(text, last_end_, Style()); }

  // Containers beyond half of the width are not indented, but all markers are shown.
  bool Fits(const Container& container, int columns) const {
    return columns + container.columns <= options_.columns / 2;
  }

  // Returns the columns of the next BeginRow.
  int PrefixColumns() const {
    int columns = std::min(position_.indent, options_.columns / 2);
    int marker_columns = 0;  // of markers beyond half of the width
    for (const Container& container : containers_) {
      if (Fits(container, columns)) {
        columns += container.columns;
      } else if (!container.marker.empty()) {
        marker_columns += container.columns;
      }
    }
    return columns + marker_columns;
  }
  int TextColumns() const { return std::max(kMinTextColumns, options_.columns - PrefixColumns()); }

  // Returns a row with the markers and indents of the containers. The markers do not appear again.
  Row BeginRow() {
    Row row;
    int columns = std::min(position_.indent, options_.columns / 2);
    row.Add(SafeText(std::string(static_cast<size_t>(columns), ' ')), {});
    for (Container& container : containers_) {
      const bool fits = Fits(container, columns);
      if (!container.marker.empty()) {
        row.Add(SafeText(std::exchange(container.marker, {})), {});
      } else if (fits && container.is_quote) {
        row.Add(SafeText("│ "), options_.DimStyle());
      } else if (fits) {
        row.Add(SafeText(std::string(static_cast<size_t>(container.columns), ' ')), {});
      }
      if (fits) columns += container.columns;
    }
    return row;
  }

  void AddRow(Row row) {
    // No blanks at the end of a row: a copy with the mouse would have them.
    if (!row.is_code && !row.spans.empty()) {
      SafeText& last = row.spans.back().text;
      const size_t end = last.view().find_last_not_of(' ') + 1;
      if (end < last.view().size()) last = last.Part(0, end);
      if (last.empty()) row.spans.pop_back();
    }
    result_.rows.push_back(std::move(row));
  }

  void Gap() {
    if (needs_gap_ && !IsDropped()) AddRow(BeginRow());
    needs_gap_ = false;
  }

  void ForgetMarkers() {
    for (Container& container : containers_) container.marker.clear();
  }

  bool HasMarker() const {
    return std::any_of(containers_.begin(), containers_.end(), [](const Container& c) { return !c.marker.empty(); });
  }

  // Ends the current run of text, if any, and adds its rows.
  void FlushInline() {
    InlineText text = std::exchange(inline_, InlineText());
    if (!has_inline_) return;
    has_inline_ = false;
    if (text.empty() ? IsDropped() : text.DropBefore(position_.start)) ForgetMarkers();
    if (text.empty()) return;
    text.Wrap(TextColumns(), [&](size_t begin, size_t end) {
      Row row = BeginRow();
      text.AppendTo(row, begin, end);
      AddRow(std::move(row));
    });
  }

  void BeginInline() {
    if (has_inline_) return;
    Gap();
    has_inline_ = true;
  }

  void EnterBlock(MD_BLOCKTYPE type, void* detail) {
    if (type != MD_BLOCK_TH && type != MD_BLOCK_TD) FlushInline();
    switch (type) {
      case MD_BLOCK_QUOTE:
        Gap();
        containers_.push_back({true, 2, ""});
        break;
      case MD_BLOCK_UL:
        lists_.push_back({false, 0, '-'});
        needs_gap_ = false;
        break;
      case MD_BLOCK_OL: {
        const auto* list = static_cast<MD_BLOCK_OL_DETAIL*>(detail);
        lists_.push_back({true, list->start, list->mark_delimiter});
        needs_gap_ = false;
        break;
      }
      case MD_BLOCK_LI: {
        const auto* item = static_cast<MD_BLOCK_LI_DETAIL*>(detail);
        List& list = lists_.back();
        std::string marker = list.is_ordered ? std::to_string(list.number++) + list.delimiter + " " : "• ";
        if (item->is_task != 0) marker += item->task_mark == ' ' ? "[ ] " : "[x] ";
        const int columns = MaxTextColumns(marker);
        containers_.push_back({false, columns, std::move(marker)});
        needs_gap_ = false;
        break;
      }
      case MD_BLOCK_HR:
        Gap();
        if (!IsDropped()) {
          std::string rule;
          for (int i = std::min(kMaxRuleColumns, TextColumns()); i > 0; --i) rule += "─";
          Row row = BeginRow();
          row.Add(SafeText(rule), options_.DimStyle());
          AddRow(std::move(row));
        }
        break;
      case MD_BLOCK_H:
        heading_level_ = static_cast<int>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
        BeginInline();
        if (!options_.has_styles) Generate(std::string(static_cast<size_t>(heading_level_), '#') + " ");
        break;
      case MD_BLOCK_CODE: {
        const auto* code = static_cast<MD_BLOCK_CODE_DETAIL*>(detail);
        Gap();
        if (HasMarker()) {
          // Code is not indented, so the markers get their own row.
          if (!IsDropped()) AddRow(BeginRow());
          ForgetMarkers();
        }
        in_code_ = true;
        code_info_ = AttributeText(code->info);
        code_fence_ = std::string(code->fence_char == 0 ? 0 : 3, code->fence_char);
        code_lines_.assign(1, {});
        code_lines_[0].is_dropped = IsDropped();
        if (!code_fence_.empty() && !IsDropped()) AddRow(RenderFence(code_fence_ + code_info_, options_));
        break;
      }
      case MD_BLOCK_TABLE:
        Gap();
        table_ = Table();
        break;
      case MD_BLOCK_THEAD:
        in_table_header_ = true;
        break;
      case MD_BLOCK_TR:
        cells_.clear();
        break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD: {
        const MD_ALIGN align = static_cast<MD_BLOCK_TD_DETAIL*>(detail)->align;
        if (type == MD_BLOCK_TH) {
          table_.alignments.push_back(align == MD_ALIGN_RIGHT    ? CellAlignment::kRight
                                      : align == MD_ALIGN_CENTER ? CellAlignment::kCenter
                                                                 : CellAlignment::kLeft);
        }
        if (++num_cells_ > kMaxTableCells) throw TooComplex();
        inline_ = InlineText();
        has_inline_ = true;
        break;
      }
      default:
        break;
    }
  }

  void LeaveBlock(MD_BLOCKTYPE type) {
    if (type == MD_BLOCK_TH || type == MD_BLOCK_TD) {
      cells_.push_back(std::exchange(inline_, InlineText()));
      has_inline_ = false;
      return;
    }
    FlushInline();
    switch (type) {
      case MD_BLOCK_QUOTE:
        containers_.pop_back();
        needs_gap_ = true;
        break;
      case MD_BLOCK_UL:
      case MD_BLOCK_OL:
        lists_.pop_back();
        needs_gap_ = true;
        break;
      case MD_BLOCK_LI:
        if (!containers_.back().marker.empty() && !IsDropped()) AddRow(BeginRow());
        containers_.pop_back();
        break;
      case MD_BLOCK_H:
        heading_level_ = 0;
        needs_gap_ = true;
        break;
      case MD_BLOCK_CODE:
        LeaveCode();
        needs_gap_ = true;
        break;
      case MD_BLOCK_THEAD:
        in_table_header_ = false;
        break;
      case MD_BLOCK_TR:
        if (table_.header.cells.empty()) {
          table_.header.cells = std::move(cells_);
        } else {
          cells_.resize(table_.header.cells.size());
          table_.rows.push_back({std::move(cells_)});
        }
        cells_.clear();
        break;
      case MD_BLOCK_TABLE:
        LeaveTable();
        needs_gap_ = true;
        break;
      case MD_BLOCK_P:
      case MD_BLOCK_HR:
        needs_gap_ = true;
        break;
      default:
        break;
    }
  }

  void LeaveCode() {
    in_code_ = false;
    // The last line feed ends the last line.
    if (code_lines_.back().text.empty()) code_lines_.pop_back();
    const CodeLanguage* language = code_fence_.empty() ? nullptr : FindCodeLanguage(code_info_);
    CodeState state = 0;
    for (const CodeLine& line : code_lines_) {
      Row row = RenderCodeLine(line.text, language, state, options_);
      if (line.is_dropped) continue;
      row.source = line.source;
      AddRow(std::move(row));
    }
    if (!code_fence_.empty() && !IsDropped()) AddRow(RenderFence(code_fence_, options_));
  }

  // Returns the source of the first text of a row of a table, or kNoSource.
  static size_t SourceOfRow(const TableRow& cells) {
    Row row;
    for (const InlineText& cell : cells.cells) {
      if (row.source == Row::kNoSource && !cell.empty()) cell.AppendTo(row, 0, 0);
    }
    return row.source;
  }

  void LeaveTable() {
    if (table_.header.cells.empty()) return;
    table_.alignments.resize(table_.header.cells.size());
    const int columns = TextColumns();
    result_.has_table = true;
    result_.table_widths =
        position_.table_widths != nullptr ? *position_.table_widths : ChooseColumnWidths(table_, columns);
    if (result_.table_widths.size() != table_.header.cells.size() && !result_.table_widths.empty()) {
      result_.table_widths = ChooseColumnWidths(table_, columns);
    }
    const auto is_dropped = [this](const TableRow& row) {
      const size_t source = SourceOfRow(row);
      return source != Row::kNoSource && source < position_.start;
    };
    const bool has_header = position_.start == 0 || !is_dropped(table_.header);
    size_t first = 0;
    for (size_t i = 0; i < table_.rows.size(); ++i) {
      if (position_.start > 0 && is_dropped(table_.rows[i])) first = i + 1;
    }
    if (!has_header || first > 0) ForgetMarkers();
    table_.rows.erase(table_.rows.begin(), table_.rows.begin() + static_cast<std::ptrdiff_t>(first));
    for (Row& table_row : LayOutTable(table_, result_.table_widths, columns, has_header, options_.has_styles)) {
      Row row = BeginRow();
      row.source = table_row.source;
      for (RowSpan& span : table_row.spans) row.Add(std::move(span.text), span.style, std::move(span.link));
      AddRow(std::move(row));
    }
  }

  // The marker of a span, which is shown on both sides of its text, and the number of open spans of this kind.
  struct SpanMarker {
    std::string_view text;
    int BlockBuilder::*depth = nullptr;
    bool is_always_shown = true;  // false: only without styles
  };
  static SpanMarker MarkerOf(MD_SPANTYPE type) {
    switch (type) {
      case MD_SPAN_EM:
        return {"*", &BlockBuilder::emphasis_depth_, false};
      case MD_SPAN_STRONG:
        return {"**", &BlockBuilder::strong_depth_, false};
      case MD_SPAN_CODE:
        return {"`", &BlockBuilder::code_depth_, false};
      case MD_SPAN_DEL:
        // Always shown: where a terminal cannot strike through, the text would say the opposite.
        return {"~~", &BlockBuilder::strike_depth_};
      case MD_SPAN_LATEXMATH:
        return {"$"};
      case MD_SPAN_LATEXMATH_DISPLAY:
        return {"$$"};
      default:
        return {""};
    }
  }

  void EnterSpan(MD_SPANTYPE type, void* detail) {
    BeginInline();
    if (type == MD_SPAN_A) return BeginLink(AttributeText(static_cast<MD_SPAN_A_DETAIL*>(detail)->href));
    if (type == MD_SPAN_IMG) {
      Generate("[image: ");
      return BeginLink(AttributeText(static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src));
    }
    const SpanMarker marker = MarkerOf(type);
    if (marker.depth != nullptr) ++(this->*marker.depth);
    GenerateMarker(marker);
  }

  void LeaveSpan(MD_SPANTYPE type) {
    if (type == MD_SPAN_A) return EndLink("");
    if (type == MD_SPAN_IMG) return EndLink("]");
    const SpanMarker marker = MarkerOf(type);
    GenerateMarker(marker);
    if (marker.depth != nullptr) --(this->*marker.depth);
  }

  void GenerateMarker(const SpanMarker& marker) {
    if (marker.is_always_shown || !options_.has_styles) Generate(marker.text);
  }

  void BeginLink(std::string url) {
    std::optional<LinkUri> uri = LinkUri::Parse(url);
    links_.push_back({inline_.size(), std::move(url), std::move(uri)});
  }

  // Ends a link, and shows its target unless its text is the target.
  void EndLink(std::string_view closing) {
    const Link link = links_.back();
    const std::string_view text = inline_.view().substr(link.begin);
    const bool has_plain_host = !link.uri || link.uri->host().find("xn--") == std::string::npos;
    const bool text_is_target =
        has_plain_host && (text == link.url || "mailto:" + std::string(text) == link.url) && closing.empty();
    if (link.uri && options_.has_links) {
      inline_.LinkFrom(link.begin, std::make_shared<const RowLink>(RowLink{*link.uri, next_link_++}));
    }
    links_.pop_back();
    Generate(closing);
    if (text_is_target) return;
    const bool is_mail = link.uri && link.uri->text().starts_with("mailto:");
    std::string target = link.uri && options_.has_links && !is_mail ? link.uri->host() : link.url;
    if (!has_plain_host && target != link.uri->host()) target += " = " + link.uri->host();
    // The space belongs to the text before it, so that a row may begin with the target.
    if (!inline_.empty()) inline_.AddGenerated(" ", last_end_ > 0 ? last_end_ - 1 : 0, Style());
    Generate("(" + target + ")");
  }

  // Returns a part of source_ without the characters that EscapeForMarkdown added. md4c removes a backslash that
  // escapes, but not one in code.
  std::string WithoutAdded(std::string_view text) const {
    const auto begin = static_cast<size_t>(text.data() - source_.data());
    auto next = std::lower_bound(added_.begin(), added_.end(), begin);
    std::string original;
    for (size_t i = 0; i < text.size(); ++i) {
      if (next != added_.end() && *next == begin + i) {
        ++next;
      } else {
        original += text[i];
      }
    }
    return original;
  }

  void Text(MD_TEXTTYPE type, std::string_view md4c_text) {
    const std::optional<size_t> source = SourceOf(md4c_text.data());
    const std::string text = source ? WithoutAdded(md4c_text) : std::string(md4c_text);
    if (in_code_) {
      AddCode(text, source);
    } else {
      BeginInline();
      if (type == MD_TEXT_NULLCHAR) {
        Generate("\uFFFD");
      } else if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR) {
        Generate("\n");
      } else if (type == MD_TEXT_ENTITY) {
        inline_.AddGenerated(DecodeEntity(text), source.value_or(last_end_), Style());
      } else if (source) {
        inline_.AddSource(text, *source, Style());
      } else {
        Generate(text);
      }
    }
    if (source) last_end_ = *source + text.size();
  }

  void AddCode(std::string_view text, std::optional<size_t> source) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      CodeLine& line = code_lines_.back();
      if (line.source == Row::kNoSource && source && end > 0) {
        line.source = *source;
        line.is_dropped = *source < position_.start;
      }
      line.text += text.substr(0, end);
      if (end == text.size()) return;
      if (source) last_end_ = *source + end;
      code_lines_.emplace_back();
      code_lines_.back().is_dropped = IsDropped();
      if (source) *source += end + 1;
      text.remove_prefix(end + 1);
    }
  }

  std::vector<size_t> added_;
  const std::string source_;
  const BlockPosition& position_;
  const RenderOptions& options_;
  RenderedBlock result_;
  std::exception_ptr exception_;

  std::vector<Container> containers_;
  std::vector<List> lists_;
  std::vector<Link> links_;
  InlineText inline_;
  bool has_inline_ = false;
  bool needs_gap_ = false;
  size_t last_end_ = 0;  // where the last text with a known source ends
  int64_t next_link_ = 0;
  int emphasis_depth_ = 0;
  int strong_depth_ = 0;
  int strike_depth_ = 0;
  int code_depth_ = 0;
  int heading_level_ = 0;
  bool in_code_ = false;
  std::string code_fence_;
  std::string code_info_;
  std::vector<CodeLine> code_lines_;
  bool in_table_header_ = false;
  Table table_;
  size_t num_cells_ = 0;
  std::vector<InlineText> cells_;
};

}  // namespace

RenderedBlock RenderBlock(std::string_view source, const BlockPosition& position, const RenderOptions& options) {
  if (!NestsTooDeep(source)) {
    try {
      return BlockBuilder(source, position, options).Run();
    } catch (const TooComplex&) {
    }
  }
  return {RenderPlainText(source, position.start, options), {}, false};
}

}  // namespace vllm::app
