"""The operators of the systematic mutator (sweep.py): what libclang's syntax tree of a file offers to change.

`candidates` finds the mutants of a file, `instrument` writes some of them into its text, each behind a switch. No edit
adds or removes a line. What only the compiler evaluates (template arguments, constexpr variables, array bounds, default
arguments, initialisers of members and of variables outside functions) cannot be switched at run time: those mutants are
marked `compile_time`.
"""

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

try:
    import clang.cindex as clang
except ImportError:  # Debian's package, seen from a Python that is not Debian's
    sys.path.append("/usr/lib/python3/dist-packages")
    import clang.cindex as clang

K, T = clang.CursorKind, clang.TypeKind

RELATIONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("+", "/"), "/": ("*",), "%": ("/",), "<<": (">>",), ">>": ("<<",),
              "&": ("|",), "|": ("&",), "^": ("|",), "+=": ("-=", "="), "-=": ("+=",), "*=": ("/=", "="), "/=": ("*=",),
              "|=": ("&=", "="), "&=": ("|=",), "^=": ("|=",), "<<=": (">>=",), ">>=": ("<<=",)}
LOGIC = {"&&": "||", "||": "&&"}
MIN_MAX = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max", "fmax": "fmin", "fmin": "fmax",
           "countr_zero": "countl_zero", "atomicMax": "atomicMin", "atomicMin": "atomicMax"}
WIDE = {T.LONG: "int", T.LONGLONG: "int", T.ULONG: "unsigned", T.ULONGLONG: "unsigned"}
INTEGERS = {T.INT, T.UINT, T.SHORT, T.USHORT, T.UCHAR, T.SCHAR, T.CHAR_S, *WIDE}
SCALARS = {T.BOOL, T.FLOAT, T.DOUBLE, *INTEGERS}
LITERALS = {K.INTEGER_LITERAL, K.FLOATING_LITERAL, K.CXX_BOOL_LITERAL_EXPR, K.CXX_NULL_PTR_LITERAL_EXPR}
LOOPS = {K.FOR_STMT, K.WHILE_STMT, K.DO_STMT, K.CXX_FOR_RANGE_STMT}
# Evaluated by the compiler, or not at all.
UNSWITCHED = {K.STATIC_ASSERT, K.PARM_DECL, K.TEMPLATE_NON_TYPE_PARAMETER, K.TEMPLATE_TYPE_PARAMETER, K.ENUM_DECL,
              K.FIELD_DECL, K.CXX_UNARY_EXPR, K.DECL_REF_EXPR, K.TYPE_ALIAS_DECL, K.TYPE_ALIAS_TEMPLATE_DECL}


@dataclass(frozen=True)
class Edit:
    start: int
    end: int
    text: str  # the mutated expression; unused where something is deleted
    wrap: str = "expression"  # or "call" (an expression whose value is not used, deleted), "statement" (deleted)


@dataclass(frozen=True)
class Mutant:
    file: str
    operator: str
    edits: tuple[Edit, ...]
    original: str
    mutated: str
    line: int
    line_text: str
    compile_time: bool = False

    @property
    def key(self) -> tuple:
        """What a mutant is known by when lines have moved."""
        return self.file, self.line_text, self.operator, self.original, self.mutated


def flat(text: str) -> str:
    """The code in one line, without comments."""
    return " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S).split())


class Finder:
    def __init__(self, file: str, source: str, path: str):
        self.file, self.source, self.path = file, source, path
        self.found: dict[tuple, Mutant] = {}
        self.macros: list[tuple[int, int]] = []
        self.lines = source.split("\n")

    def span(self, node) -> tuple[int, int]:
        return node.extent.start.offset, node.extent.end.offset

    def text(self, node) -> str:
        start, end = self.span(node)
        return flat(self.source[start:end])

    def after(self, node) -> str:
        return self.source[node.extent.end.offset:].lstrip()[:1]

    def in_macro(self, start: int, end: int) -> bool:
        return any(s < end and start < e and not (start <= s and e <= end and (s, e) != (start, end))
                   for s, e in self.macros)

    def add(self, operator: str, edits, compile_time: bool, original: str = "", mutated: str = ""):
        edits = tuple(e if isinstance(e, Edit) else Edit(*e) for e in edits)
        start, end = edits[0].start, edits[0].end
        if any(e.start >= e.end or self.in_macro(e.start, e.end) and operator != "identity" for e in edits):
            return
        original = original or flat(self.source[start:end])
        mutated = mutated or edits[0].text
        line = self.source.count("\n", 0, start) + 1
        mutant = Mutant(self.file, operator, edits, original, mutated, line, self.lines[line - 1].strip(), compile_time)
        self.found.setdefault(tuple((e.start, e.end, e.text, e.wrap) for e in edits), mutant)

    # One function for each kind of node. `now` says whether the compiler alone evaluates it.

    def binary(self, node, children, now):
        if len(children) != 2:
            return
        (start, left_end), (right_start, end) = self.span(children[0]), self.span(children[1])
        sign = flat(self.source[left_end:right_start]).replace("(", "").replace(")", "").strip()
        left, right = self.text(children[0]), self.text(children[1])
        between = flat(self.source[left_end:right_start])
        for operator, table in (("relation", RELATIONS), ("arithmetic", ARITHMETIC)):
            for other in table.get(sign, ()):
                self.add(operator, [(start, end, f"{left} {between.replace(sign, other)} {right}")], now)
        if sign in LOGIC:
            self.add("logic", [(start, end, f"({left}) {LOGIC[sign]} ({right})")], now)
            for kept in (left, right):
                self.add("condition deleted", [(start, end, kept)], now)
        if sign in ("+", "-", "*", "<<"):
            self.narrow(node, now)

    def narrow(self, node, now):
        kind = node.type.get_canonical().kind
        if kind in WIDE:
            wide = "long" if kind in (T.LONG, T.LONGLONG) else "unsigned long"
            narrowed = f"static_cast<{wide}>(static_cast<{WIDE[kind]}>({self.text(node)}))"
            self.add("width", [(*self.span(node), narrowed)], now)

    def unary(self, node, children, now):
        start, end = self.span(node)
        text = self.text(node)
        if text.startswith("-INFINITY"):
            for other in ("-1e30f", "0.0f"):
                self.add("identity", [(start, end, other)], now)
        elif text[:2] in ("++", "--") or text[-2:] in ("++", "--"):
            self.add("arithmetic", [(start, end, text.replace("++", "@").replace("--", "++").replace("@", "--"))], now)
        elif text[:1] in "-!~" and children:
            self.add("sign dropped", [(start, end, self.text(children[0]))], now)

    def literal(self, node, kind, now):
        span, text = self.span(node), self.text(node)
        if kind == K.INTEGER_LITERAL and re.match(r"[0-9]", text):
            self.add("constant", [(*span, f"{text} + 1")], now)
            if not re.match(r"0[uUlL]*$", text):
                self.add("constant", [(*span, f"{text} - 1")], now)
        elif kind == K.FLOATING_LITERAL:
            if text == "INFINITY":
                self.add("identity", [(*span, "1e30f")], now)
            elif float(text.rstrip("fF")) == 0:
                self.add("identity", [(*span, text.replace("0.0", "1e-6"))], now)
            else:
                for other in (f"{text} * 1.001f", "0.0f" if text.endswith("f") else "0.0"):
                    self.add("constant", [(*span, other)], now)
        elif kind == K.CXX_BOOL_LITERAL_EXPR:
            self.add("constant", [(*span, "false" if text == "true" else "true")], now)

    def call(self, node, now):
        span, name = self.span(node), node.spelling
        arguments = [a for a in node.get_arguments()  # those that are written, and no conversion of the whole
                     if a is not None and self.span(a) != span and span[0] <= self.span(a)[0] < span[1]]
        if name.startswith("operator"):
            arguments = arguments[1:] if name == "operator()" else []
        self.swaps(arguments, now)
        for argument in arguments:
            kind, type_name = argument.type.get_canonical().kind, argument.type.get_canonical().spelling
            text = self.text(argument)
            zero = {T.BOOL: "false", T.POINTER: "nullptr"}.get(kind, "0")
            if (kind in SCALARS or kind == T.POINTER) and not re.fullmatch(r"0|0\.0f?|nullptr|false|\".*\"", text):
                self.add("argument dropped", [(*self.span(argument), f"static_cast<{type_name}>({zero})")], now)
        start, end = span
        if name in MIN_MAX:
            whole = self.text(node)
            self.add("min/max", [(start, end, re.sub(rf"\b{name}\b", MIN_MAX[name], whole, count=1))], now)
        if name == "exchange" and len(arguments) == 2:
            self.add("state kept", [(start, end, self.text(arguments[0]))], now)
        function = node.referenced
        parameters = list(function.get_arguments()) if function is not None else []
        # Of the standard library's defaults, those of memory orders make no difference that a test on x86 could see.
        if 0 < len(arguments) == len(parameters) and "memory_order" not in self.text(arguments[-1]) and any(
                t.spelling == "=" for t in parameters[-1].get_tokens()):
            last = self.span(arguments[-1])[0]
            kept = flat(self.source[start:last]).rstrip().rstrip(",")
            self.add("default taken", [(start, end, kept + flat(self.source[self.span(arguments[-1])[1]:end]))], now)

    def swaps(self, arguments, now):
        for i, first in enumerate(arguments):
            for second in arguments[i + 1:]:
                a, b = self.text(first), self.text(second)
                kinds = [x.type.get_canonical() for x in (first, second)]
                alike = kinds[0].spelling.removeprefix("const ") == kinds[1].spelling.removeprefix("const ") or all(
                    k.kind in INTEGERS for k in kinds)
                if a != b and alike and not '"' in a + b:
                    self.add("arguments swapped", [(*self.span(first), b), (*self.span(second), a)], now,
                             f"{a}, {b}", f"{b}, {a}")

    def statement(self, node, kind, now):
        """Of a statement that stands for itself, deleted."""
        start, end = self.span(node)
        if kind.is_expression():
            if self.after(node) == ";":
                operator = "barrier deleted" if self.text(node).startswith("__sync") else "statement deleted"
                self.add(operator, [(start, end, "", "call")], now, mutated="(nothing)")
        elif kind in LOOPS or kind in (K.CONTINUE_STMT, K.BREAK_STMT) or self.source[start:end] == "return":
            rest = self.source[end:]
            if rest.lstrip()[:1] == ";":
                end += rest.index(";") + 1
            self.add("statement deleted", [(start, end, "", "statement")], now, flat(self.source[start:end])[:100],
                     "(nothing)")

    def condition(self, node, now):
        text, span = self.text(node), self.span(node)
        if node.kind != K.BINARY_OPERATOR or "&&" in text or "||" in text:  # relations have their own
            self.add("condition negated", [(*span, f"!({text})")], now)
        for constant in ("true", "false"):
            self.add("condition deleted", [(*span, constant)], now)

    def variable(self, node, children, now):
        """The initialiser of a variable, when it is evaluated at run time."""
        start, name = self.span(node)[0], node.location.offset
        constant = re.search(r"\bconst(expr|init)\b", self.source[start:name])
        for child in children:
            begin = self.span(child)[0]
            between = self.source[name:begin]
            by_compiler = constant or begin < name or "[" in between and "=" not in between
            if not by_compiler and node.type.is_const_qualified() and node.type.get_canonical().kind in INTEGERS:
                by_compiler = not any(
                    n.kind in (K.CALL_EXPR, K.MEMBER_REF_EXPR) or n.kind == K.DECL_REF_EXPR and not n.spelling.isupper()
                    for n in child.walk_preorder())
            self.visit(child, node, now or bool(by_compiler))

    def visit(self, node, parent, now):
        try:
            kind, children = node.kind, list(node.get_children())
        except ValueError:  # a kind that the Python bindings do not know
            return
        parent_kind = parent.kind if parent is not None else None
        now = now or kind in UNSWITCHED
        if kind == K.VAR_DECL:
            return self.variable(node, children, now)
        start = self.span(node)[0]
        before = self.source[:start].rstrip()
        if kind in LITERALS and parent_kind != K.BINARY_OPERATOR and before.endswith("<") and not before.endswith("<<"):
            now = True  # a template argument
        if parent_kind == K.COMPOUND_STMT or parent_kind in (*LOOPS, K.IF_STMT) and self.is_body(node, parent):
            self.statement(node, kind, now)
        match kind:
            case K.BINARY_OPERATOR | K.COMPOUND_ASSIGNMENT_OPERATOR:
                self.binary(node, children, now)
            case K.UNARY_OPERATOR:
                self.unary(node, children, now)
            case K.CALL_EXPR:
                self.call(node, now)
                self.narrow(node, now)
            case K.CXX_STATIC_CAST_EXPR | K.CXX_FUNCTIONAL_CAST_EXPR:
                self.narrow(node, now)
            case K.INIT_LIST_EXPR:
                self.swaps([c for c in children if c.kind.is_expression()], now)
            case K.UNEXPOSED_EXPR if len(children) == 1 and self.span(children[0]) == self.span(node) and (
                    children[0].kind in (K.DECL_REF_EXPR, K.MEMBER_REF_EXPR, K.ARRAY_SUBSCRIPT_EXPR)):
                self.narrow(node, now)
            case K.CONDITIONAL_OPERATOR if children:
                self.condition(children[0], now)
            case K.RETURN_STMT if children and children[0].type.get_canonical().kind == T.BOOL:
                self.add("condition negated", [(*self.span(children[0]), f"!({self.text(children[0])})")], now)
            case _ if kind in LITERALS:
                self.literal(node, kind, now)
        if kind in (K.IF_STMT, K.WHILE_STMT):
            fixed = re.match(r"if\s+constexpr", self.source[start:]) is not None
            for child in children[:2]:
                if child.kind.is_expression() and self.after(child) == ")":
                    self.condition(child, now or fixed)
                    self.visit(child, node, now or fixed)
                    children.remove(child)
                    break
        for index, child in enumerate(children):
            fixed = kind == K.CASE_STMT and index == 0 or kind == K.MEMBER_REF_EXPR and self.span(child)[0] != start
            outside = child.kind == K.COMPOUND_STMT or kind == K.LAMBDA_EXPR
            self.visit(child, node, False if outside and parent_kind != K.PARM_DECL else now or fixed)

    def is_body(self, node, parent) -> bool:
        if parent.kind == K.IF_STMT:
            return self.after(node) == ";"
        return self.span(node) == self.span(list(parent.get_children())[-1])


@cache
def index():
    return clang.Index.create()


def candidates(path: str, file: str, includes: str, flags: list[str]) -> list[Mutant]:
    """The mutants of the file at `path`, `file` in the repository; a header is parsed behind `includes`."""
    source = Path(path).read_bytes().decode("latin-1")  # libclang counts bytes
    name, text = (path, None) if not includes else ("/sweep/unit.cpp", f'{includes}\n#include "{file}"\n')
    unit = index().parse(name, args=["-xc++", "-std=c++20", *flags], unsaved_files=[(name, text)] if text else None,
                         options=clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    errors = [d for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if errors:
        raise ValueError(f"{file}: libclang says: {errors[0]}")
    finder = Finder(file, source, path)
    here = [c for c in unit.cursor.get_children() if c.location.file is not None and c.location.file.name == path]
    finder.macros = [finder.span(c) for c in here if c.kind == K.MACRO_INSTANTIATION]
    for cursor in here:
        if not cursor.kind.is_preprocessing():
            finder.visit(cursor, None, True)  # outside a function's body nothing can be switched
    return sorted(finder.found.values(), key=lambda m: (m.edits[0].start, m.edits[0].end, m.operator, m.mutated))


def instrument(source: str, mutants: dict[int, Mutant]) -> tuple[str, list[tuple[int, int, int]]]:
    """The text with each mutant behind its switch, and for each edit (start, end, number) in the new text."""
    edits = sorted(((e, number) for number, m in mutants.items() for e in m.edits),
                   key=lambda pair: (pair[0].start, -pair[0].end, pair[0].wrap != "statement", pair[1]))
    places: list[tuple[int, int, int]] = []
    out: list[str] = []
    length = 0

    def put(text: str):
        nonlocal length
        out.append(text)
        length += len(text)

    def render(start: int, end: int, inside: list):
        at = start
        while inside:
            edit, number = inside.pop(0)
            nested = []
            while inside and inside[0][0].start < edit.end:
                nested.append(inside.pop(0))
            put(source[at:edit.start])
            begin, switch = length, f"::ladder_mutant<{number}>()"
            opening, closing = {"expression": (f"({switch} ? ({edit.text}) : (", "))"),
                                "call": (f"({switch} ? void() : void(", "))"),
                                "statement": (f"{{ if (!{switch}) ", " }")}[edit.wrap]
            put(opening)
            render(edit.start, edit.end, nested)
            put(closing)
            places.append((begin, length, number))
            at = edit.end
        put(source[at:end])

    render(0, len(source), edits)
    return "".join(out), places
