// Sets the locale of the process, which readline and ncurses use to decode text and to count columns. The locale is
// global; main thread, while no other thread runs code that depends on it.
#pragma once

namespace vllm::app {

// Sets LC_CTYPE from the environment, or to C.UTF-8 instead of C and POSIX, in which no character outside ASCII would
// be shown. Returns true if the user's own locale uses UTF-8. Other categories are not set, so numbers keep the C
// locale's format.
bool SetCharacterLocale();

}  // namespace vllm::app
