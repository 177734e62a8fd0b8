"""Turns the hand-written facts into many differently worded questions and conversations. Seeded by the caller's Random."""

import pathlib
import re

INNERMOST = re.compile(r"\{([^{}]*)\}")

VERB_WRAPPERS = """how do I {}|how do I {}|how can I {}|how to {}|how would I {}|how does one {}|how would one {}|how should I {}|how do you {}
how could I {}|how might I {}|how do we {}|how am I supposed to {}|I want to {}|I'd like to {}|I need to {}|I wish to {}|I have to {}|I would love to {}
is there a way to {}|is there any way to {}|any way to {}|is it possible to {}|can I {}|can I {}|could I {}|may I {}|am I able to {}
can vllmcli {}|does vllmcli let me {}|will vllmcli {}|can this tool {}|can the program {}|what do I type to {}|what should I type to {}
what do I enter to {}|what do I press to {}|what must I do to {}|what should I do to {}|what can I do to {}|what is needed to {}
what command do I use to {}|which command lets me {}|what is the command to {}|which command would {}|what command would I need to {}|command to {}
which flag lets me {}|what flag do I need to {}|which option do I use to {}|is there a flag to {}|is there an option to {}|what switch would {}|flag to {}
show me how to {}|tell me how to {}|explain how to {}|can you explain how to {}|can you tell me how to {}|could you tell me how I {}
can you show me how I {}|please explain how I can {}|help me {}|help me to {}|teach me how to {}|I don't know how to {}|I forgot how to {}|I can't work out how to {}
what is the way to {}|what's the way to {}|what's the right way to {}|what is the best way to {}|what's the easiest way to {}|the way to {}
trying to {}|I am trying to {}|I'm looking for a way to {}|my goal is to {}|suppose I want to {}|what if I want to {}|say I want to {}|let me {}
{}|{}|{}|please {}|where do I {}|where can I {}|do you know how to {}|who can tell me how to {}|what are the steps to {}|steps to {}|what would let me {}
I'm keen to {}|would you know how to {}|what's required to {}|in which way can I {}|could you help me {}|is one able to {}|may one {}|how might one {}|how would a beginner {}
the trick to {}|I was told one can {}|please say how to {}|what's the procedure to {}|what do I have to do to {}|do you happen to know how to {}|give me the command to {}|which of the flags would {}
I must {}|we need to {}|my boss wants me to {}|it would be nice to {}|I'd prefer to {}|somebody asked me to {}|what would you do to {}|how is one to {}|by what means can I {}|what lets one {}
I was wondering how to {}|I wonder how I can {}|what does it take to {}|remind me how to {}|what does one do to {}|need to {}|want to {}|how do people {}"""
NOUN_WRAPPERS = """what is {}|what is {}|what's {}|what does {} do|what does {} mean|what does {} mean|explain {}|please explain {}|tell me about {}|tell me more about {}|{}|{}|{}
describe {}|what about {}|meaning of {}|the meaning of {}|I don't understand {}|what do you know about {}|info on {}|information about {}|help with {}
what is meant by {}|how does {} work|what is {} for|what's {} about|can you explain {}|could you explain {}|can you tell me about {}|say something about {}
I have a question about {}|question about {}|how about {}|I read about {}, what is it|what's the deal with {}|what's the purpose of {}|why is there {}|when would I use {}
how do I use {}|how to use {}|where does {} come in|I'd like to know about {}|define {}|give me details on {}|what should I know about {}|I saw {}, what is that"""
SUFFIXES = """ with vllmcli| in vllmcli| with this tool| in this program| here| please| from the command line| from the terminal| using vllmcli| with the tool| in the app| exactly| then| now| quickly"""
OPENERS = """hey, |hello, |hi, |hi there, |ok, |ok so |so |well, |please, |quick question: |question: |one more thing: |sorry, |excuse me, |hmm, |um, |and |also, |now |vllmcli: |just curious, |i'm new here, |i am a beginner, |dear guide, |good morning, |good evening, |another question: |alright, |by the way, |for my project, |in short, |simple question, """
CLOSERS = """ please| thanks| thank you| cheers|, thanks|, please| if possible| at all| today| again| for me"""

SYNONYMS = [s.split("|") for s in """stop|halt|interrupt|cancel|abort|break off
program|tool|app|application|software|binary
model|checkpoint
prompts|questions|inputs|requests
answer|reply|response
answers|replies|responses
show|print|display|see|view|get
choose|pick|select
set|change|adjust|configure|specify|alter|modify|control|tune
run|execute|process
start|begin|launch|open
quit|exit|leave|close
maximum|max|largest|highest
limit|cap|restrict|bound
folder|directory|dir
write|save|store|put
error|failure|problem|fault
memory|ram
number|count|amount
mean|signify|indicate|tell me|stand for|say
many|multiple|several|lots of|a lot of|a bunch of
flag|option|switch|parameter|setting|argument
conversation|chat|dialogue|session|discussion
computer|machine|box|laptop|server
list|enumerate
fast|quick|speedy
slow|sluggish
use|employ|utilise|utilize
make|have|let
big|large|huge
text|string
terminal|console|shell|command line
statistics|stats|metrics|numbers
same|identical
remove|delete|erase|wipe|clear
help|assistance
seed|random seed
randomness|variation|creativity
length|size
longer|lengthier
shorter|briefer
default|standard|normal
keep|preserve|retain
order|ordering|sequence
line|row|entry
lines|rows|entries
give|hand|provide|pass|supply|feed
measure|benchmark|time
several times|repeatedly
instructions|directions|guidance
colour|color
tokenise|tokenize
work|function|operate
completion|continuation
finish|complete|end
script|shell script|program
want|wish|would like|desire|intend|hope|plan|need
need|require|must have|want
get|obtain|receive|fetch|acquire|grab
find|locate|discover|spot
know|learn|find out|understand|discover
tell|inform|say|explain|report
explain|describe|clarify|outline|detail|illustrate
ask|query|question|enquire|inquire
send|submit|deliver|transmit|post|throw
load|open|import|read in|bring in|mount
save|keep|retain|record|dump
read|ingest|consume|parse|take in
put|place|stick|insert|enter
name|specify|state|mention|indicate|give
choose|decide on|opt for|settle on
switch|toggle|swap|flip
turn off|disable|deactivate|kill|shut off
turn on|enable|activate|switch on
reduce|lower|decrease|cut|shrink|lessen|minimise|bring down
increase|raise|boost|enlarge|grow|extend|lift|bump
limit|restrain|constrain|curb
avoid|prevent|dodge|escape|get around|skip
check|verify|inspect|examine|test|validate
change|replace|exchange|vary|update|edit
make|create|produce|build|generate|form
write|type|compose|produce|output|emit
happens|occurs|takes place|goes on|results
run|perform|do|carry through|operate|conduct
work|behave|go|act
answer|response|reply|result|output|what it says
answers|responses|replies|results|outputs
question|query|prompt|request
questions|queries|prompts|requests
file|document|text file
files|documents|data
text|words|content|passage|writing
speed|rate|pace|performance|velocity
time|duration|period
amount|quantity|volume|count
kind|type|sort|class
kinds|types|sorts|classes
way|method|means|manner|possibility|approach|trick
key|keystroke|button|keyboard shortcut|key combination
command|instruction|subcommand
commands|instructions|subcommands
flag|command-line flag|command-line option|knob
problem|trouble|issue|difficulty|bug
model|llm|language model|neural network|net|network|ai
models|llms|networks|checkpoints
chat|talk|conversation|dialog|exchange
chat|repl|interactive mode
several|various|a few|a number of|some|many
all|every|each of the|the complete
whole|entire|complete|full
big|huge|giant|massive|large|enormous
small|tiny|little|compact
quickly|fast|rapidly|swiftly
easy|simple|straightforward|painless
same|equal|unchanged|exact same
different|other|another|separate
current|present|running|ongoing|active
previous|earlier|former|last|prior|past
exactly|precisely|literally
possible|feasible|doable|allowed|permitted
good|suitable|fine|right|proper|sensible
wrong|bad|incorrect|faulty|invalid
broken|corrupt|damaged|defective|bad
automatically|by itself|on its own
together|at once|simultaneously|in parallel|at the same time
before|prior to|ahead of
after|once|following
while|during|as
without|with no|minus|lacking
inside|within|in
also|too|as well
only|just|merely|solely|nothing but
default|usual|preset|out-of-the-box
supported|possible|accepted|allowed|understood|available
memory|main memory|ram|working memory
cores|cpus|processors|cpu cores|threads
disk|drive|storage
folder|path|location|place
weights|parameters|tensors
prompt|input|question|message|text
message|text|line|utterance
history|memory|past|log
reproducible|repeatable|deterministic|stable
random|varied|unpredictable
creative|imaginative|inventive|original
shorter|more concise|less long|tighter
slow|sluggish|laggy|not fast
repeat|redo|say again|reiterate
repeats|loops|echoes
remember|recall|retain|keep in mind
forget|drop|lose|discard
mean|imply|denote|represent
means|indicates|signifies|says|tells
result|outcome|output
print|echo|write out|output|dump
split|divide|share|spread|partition|distribute
count|tally|number|total
see|look at|view|inspect|observe|watch
measure|gauge|assess|determine|evaluate|rate
install|set up|deploy
build|compile|make
help|support|aid|hand|advice
thanks|thank you|cheers|thx""".split("\n")]
SYNONYM_OF = {}
for group in SYNONYMS:
    for word in group:
        if " " not in word:
            SYNONYM_OF.setdefault(word, []).extend(w for w in group if w != word and w not in SYNONYM_OF.get(word, ()))

STOPWORDS = set("""a an the i my me do does is are to of in on for with and it that this how what can could would should you your we be will
please there at by which so just want need like from one when if or am as some any into its tell way""".split())

# Words that do not identify a fact. They are inserted so that a single unknown word does not determine the answer.
FILLER_WORDS = """actually really somehow maybe perhaps big small old new good bad nice simple properly correctly directly easily safely later tomorrow
tonight morning people colleague friend boss team office home work project task thing stuff bit lot kind sort case moment while during whenever
always often sometimes never usually again still already yet too also even ever only own whole entire certain particular special different other
first last next great little few several much more most less least very quite rather pretty fairly long short quick proper clean plain basic
linux debian ubuntu laptop desktop remote ssh tmux makefile cron python notebook report essay thesis dataset spreadsheet mail web site page log
foo bar baz alice bob german english french university student teacher company customer service production testing demo workshop experiment"""


def _options(text):
    return [option for line in text.split("\n") for option in line.split("|")]


VERB_WRAPPERS, NOUN_WRAPPERS = _options(VERB_WRAPPERS), _options(NOUN_WRAPPERS)
SUFFIXES, OPENERS, CLOSERS = _options(SUFFIXES), _options(OPENERS), _options(CLOSERS)


class Fact:
    """One thing the guide knows: its answers and its phrasings by kind (q whole question, v verb phrase, n noun phrase, f follow-up)."""

    def __init__(self, name, weight):
        self.name, self.weight, self.answers, self.phrasings, self.follow_ups = name, weight, [], [], []


def load_facts(folder):
    """Reads facts/*.txt. `[name] weight` opens a fact, `[+name]` continues a fact of an earlier file; `a:` answer, `q:` `v:` `n:` phrasing with {this|that}, `f: name: phrasing` follow-up."""
    facts = {}
    for path in sorted(pathlib.Path(folder).glob("*.txt")):
        fact = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                name, weight = line[1:].split("]")
                if name.startswith("+"):
                    fact = facts[name[1:]]
                    continue
                assert name not in facts, f"{path}:{number}: {name} twice"
                fact = facts[name] = Fact(name, float(weight or 1))
                continue
            kind, rest = line[0], line[2:].strip()
            assert line[1] == ":" and kind in "aqvnf", f"{path}:{number}: {line}"
            if kind == "a":
                fact.answers.append(rest)
            elif kind == "f":
                target, phrasing = rest.split(":", 1)
                fact.follow_ups.append((target.strip(), phrasing.strip()))
            else:
                assert rest.count("{") == rest.count("}"), f"{path}:{number}: braces"
                fact.phrasings.append((kind, rest))
    for fact in facts.values():
        assert fact.answers and fact.phrasings, fact.name
        for target, _ in fact.follow_ups:
            assert target in facts, f"{fact.name}: follow-up to unknown {target}"
    return facts


def expand(text, rng):
    """Replaces each {a|b|c}, innermost first, with one of its options."""
    while True:
        match = INNERMOST.search(text)
        if not match:
            return re.sub(r"\s+", " ", text).strip()
        text = text[: match.start()] + rng.choice(match.group(1).split("|")) + text[match.end():]


def _typo(word, rng):
    if len(word) < 4 or not word.isalpha():
        return word
    i = rng.randrange(1, len(word) - 1)
    kind = rng.random()
    if kind < 0.35:
        return word[:i] + word[i + 1] + word[i] + word[i + 2:]
    if kind < 0.7:
        return word[:i] + word[i + 1:]
    if kind < 0.85:
        return word[:i] + word[i] + word[i:]
    return word[:i] + rng.choice("abcdefghijklmnopqrstuvwxyz") + word[i + 1:]


def _map_words(text, change):
    return " ".join(change(word) for word in text.split(" ") if word)


def _swap_synonym(word, rng, rate):
    core = word.strip("?,.!:;")
    options = SYNONYM_OF.get(core.lower())
    if not options or rng.random() >= rate:
        return word
    return word.replace(core, rng.choice(options), 1)


def vary(text, rng, filler_words):
    """Returns a rough variant of a clean question: with synonyms, dropped or inserted words, a typo, another case or punctuation."""
    rate = rng.choice((0, 0, 0.15, 0.4))
    text = _map_words(text, lambda w: _swap_synonym(w, rng, rate))
    draw = rng.random()
    if draw < 0.08:  # keywords only
        kept = [w for w in text.split(" ") if w.lower().strip("?,.'") not in STOPWORDS]
        text = " ".join(kept) or text
    elif draw < 0.2:
        kept = [w for w in text.split(" ") if w.lower() not in STOPWORDS or rng.random() > 0.4]
        text = " ".join(kept) or text
    elif draw < 0.27:  # inserts an unrelated word: the others must carry the meaning
        words = text.split(" ")
        words.insert(rng.randrange(len(words) + 1), rng.choice(filler_words))
        text = " ".join(words)
    elif draw < 0.33 and len(text.split(" ")) > 4:
        words = text.split(" ")
        words[rng.randrange(len(words))] = rng.choice(filler_words)
        text = " ".join(words)
    if rng.random() < 0.15:
        text = rng.choice(OPENERS) + text
    if rng.random() < 0.08:
        text = text.rstrip("?.! ") + rng.choice(CLOSERS)
    if rng.random() < 0.12:
        words = text.split(" ")
        i = rng.randrange(len(words))
        words[i] = _typo(words[i], rng)
        text = " ".join(words)
    if rng.random() < 0.1:
        text = text.replace("'", "")
    case = rng.random()
    if case < 0.5:
        text = text[:1].upper() + text[1:]
    elif case < 0.8:
        text = text.lower() if "-" not in text and "/" not in text else text
    elif case < 0.82:
        text = text.upper()
    end = rng.random()
    if end < 0.5:
        text = text.rstrip("?.! ") + "?"
    elif end < 0.6:
        text = text.rstrip("?.! ") + "."
    elif end < 0.95:
        text = text.rstrip("?.! ")
    return text.strip()


def clean_question(fact, rng):
    kind, pattern = rng.choice(fact.phrasings)
    text = expand(pattern, rng)
    if kind == "v":
        text = rng.choice(VERB_WRAPPERS).format(text)
    elif kind == "n":
        text = rng.choice(NOUN_WRAPPERS).format(text)
    if kind != "q" and rng.random() < 0.2:
        text += rng.choice(SUFFIXES)
    return text


REPEATS = """can you {repeat|say} that {again|once more}|{say|tell me} that again|repeat {that|please|your answer}|{once more|one more time} please|come again|pardon|what did you {just say|say}|i {missed|did not catch|didn't get} that|sorry, what|again please"""
BARE_FOLLOW_UPS = ["and {}", "what about {}", "how about {}", "and what about {}", "ok, and {}", "and {}, how", "thanks, and {}", "great. {}", "then {}"]
SYSTEM_PROMPTS = """You are {a helpful|an honest|a polite|a friendly|the} {assistant|guide|helper}.|You are the guide to vllmcli.|Answer {briefly|shortly|in whole sentences|politely}.|Be {brief|concise|kind|helpful|honest}.|You are {a pirate|an expert|a teacher|a chat bot}.|Help the user with {vllmcli|the program|the tool}.|You are a helpful assistant. Answer {truthfully|in English|with care}."""


class Sampler:
    """Draws conversations: lists of {"role", "content"}."""

    def __init__(self, facts, rng):
        self.facts, self.rng = facts, rng
        self.names = list(facts)
        self.weights = [facts[n].weight for n in self.names]
        self.filler_words = FILLER_WORDS.split()

    def _turn(self, fact, text):
        return [{"role": "user", "content": text}, {"role": "assistant", "content": self.rng.choice(fact.answers)}]

    def question(self, fact):
        text = clean_question(fact, self.rng)
        return text if self.rng.random() < 0.15 else vary(text, self.rng, self.filler_words)

    def conversation(self):
        rng = self.rng
        messages = []
        if rng.random() < 0.12:
            messages.append({"role": "system", "content": expand(rng.choice(_SYSTEM), rng)})
        turns = 1 if rng.random() < 0.76 else rng.choice((2, 2, 2, 3, 3, 4, 6))
        fact = self.facts[rng.choices(self.names, self.weights)[0]]
        messages += self._turn(fact, self.question(fact))
        for _ in range(turns - 1):
            draw = rng.random()
            if draw < 0.07:
                messages += [{"role": "user", "content": vary(expand(rng.choice(_REPEATS), rng), rng, self.filler_words)},
                             {"role": "assistant", "content": messages[-1]["content"]}]
                continue
            if draw < 0.45 and fact.follow_ups:
                target, pattern = rng.choice(fact.follow_ups)
                fact = self.facts[target]
                text = vary(expand(pattern, rng), rng, self.filler_words)
            else:
                fact = self.facts[rng.choices(self.names, self.weights)[0]]
                bare = [p for kind, p in fact.phrasings if kind in "vn"]
                if draw < 0.6 and bare:
                    text = vary(rng.choice(BARE_FOLLOW_UPS).format(expand(rng.choice(bare), rng)), rng, self.filler_words)
                else:
                    text = self.question(fact)
            messages += self._turn(fact, text)
        return messages


def _split_outside_braces(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == "|" and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]]


_REPEATS, _SYSTEM = _split_outside_braces(REPEATS), _split_outside_braces(SYSTEM_PROMPTS)
