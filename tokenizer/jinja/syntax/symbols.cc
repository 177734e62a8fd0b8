#include "tokenizer/jinja/syntax/symbols.h"

#include <array>
#include <limits>

#include "tokenizer/jinja/syntax/lexer.h"

namespace vllm::tokenizer::jinja {

Symbols::Symbols(const Symbols* parent, FunctionBuilder* function)
    : parent_(parent), function_(function), slots_(std::make_shared<std::map<std::string, uint16_t>>()) {}

Symbols Symbols::BranchOf(const Symbols& scope) {
  Symbols branch(scope.parent_, scope.function_);
  branch.base_ = &scope;
  branch.slots_ = scope.slots_;
  return branch;
}

const Ident* Symbols::FindOwnRef(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->base_) {
    const auto found = scope->refs_.find(name);
    if (found != scope->refs_.end()) return &found->second;
  }
  return nullptr;
}

const Ident* Symbols::FindRef(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->parent_) {
    if (const Ident* found = scope->FindOwnRef(name)) return found;
  }
  return nullptr;
}

bool Symbols::HasStored(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->base_) {
    if (scope->stores_.count(name) != 0) return true;
  }
  return false;
}

Ident Symbols::Define(const std::string& name, SlotSource source) {
  auto [entry, is_new] = slots_->try_emplace(name, 0);
  if (is_new) {
    if (function_->num_slots >= std::numeric_limits<uint16_t>::max())
      throw SyntaxError(1, "too many variables (limit 65535)");
    entry->second = static_cast<uint16_t>(function_->num_slots++);
  }
  const Ident ident{function_, entry->second};
  refs_[name] = ident;
  loads_[name] = source;
  return ident;
}

void Symbols::Load(const std::string& name) {
  if (FindRef(name) == nullptr) Define(name, {SlotLoad::Source::kResolve, {}, false});
}

void Symbols::Store(const std::string& name) {
  stores_.insert(name);
  if (FindOwnRef(name) != nullptr) return;
  const Ident* outer = parent_ == nullptr ? nullptr : parent_->FindRef(name);
  if (outer != nullptr) {
    Define(name, {SlotLoad::Source::kAlias, *outer, false});
  } else {
    Define(name, {SlotLoad::Source::kMissing, {}, false});
  }
}

Ident Symbols::DeclareParameter(const std::string& name) {
  stores_.insert(name);
  return Define(name, {SlotLoad::Source::kMissing, {}, true});
}

void Symbols::MergeBranches(const Symbols& body, const Symbols& elifs, const Symbols& otherwise) {
  std::map<std::string, int> num_branches;
  const std::array<const Symbols*, 3> branches = {&body, &elifs, &otherwise};
  for (const Symbols* branch : branches) {
    for (const std::string& name : branch->stores_) {
      if (!HasStored(name)) ++num_branches[name];
    }
  }
  for (const Symbols* branch : branches) {
    for (const auto& [name, ident] : branch->refs_) refs_[name] = ident;
    for (const auto& [name, source] : branch->loads_) loads_[name] = source;
    stores_.insert(branch->stores_.begin(), branch->stores_.end());
  }
  for (const auto& [name, count] : num_branches) {
    if (count == static_cast<int>(branches.size())) continue;
    const Ident* outer = parent_ == nullptr ? nullptr : parent_->FindRef(name);
    if (outer != nullptr) {
      loads_[name] = {SlotLoad::Source::kAlias, *outer, false};
    } else {
      loads_[name] = {SlotLoad::Source::kResolve, {}, false};
    }
  }
}

VarRef Symbols::RefTo(Ident ident) const {
  return {static_cast<uint16_t>(function_->depth - ident.function->depth), ident.slot};
}

VarRef Symbols::Resolve(const std::string& name) const {
  const Ident* ident = FindRef(name);
  if (ident == nullptr) throw SyntaxError(1, "name '" + name + "' was not analyzed");
  return RefTo(*ident);
}

ScopeLayout Symbols::Layout() const {
  ScopeLayout layout;
  for (const auto& [name, slot] : *slots_) layout.slots.push_back(slot);
  for (const auto& [name, source] : loads_) {
    if (source.is_parameter) continue;
    SlotLoad load;
    load.slot = slots_->at(name);
    load.source = source.source;
    load.name = name;
    if (source.source == SlotLoad::Source::kAlias) load.alias = RefTo(source.alias);
    layout.loads.push_back(std::move(load));
  }
  return layout;
}

}  // namespace vllm::tokenizer::jinja
