"""What of the language a program uses: the report that no construct is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.parser import parse

from .composites import GEOMETRY
from .functions import BITS
from .memory import is_composite
from .names import FUNCTIONS, KERNELS, ODD_INDICES, RESERVED
from .typed_constructs import TYPED, constructs_of_items

CONSTRUCTS: Final = (
    *(
        "f16",
        "schedule of a stage",
        "const",
        "fn",
        "fn with let",
        "host",
        "schedule",
        "several statements",
    ),
    *("vector", "scalar f32", "scalar i32", "scalar u32", "default", "several outputs"),
    *("let", "let of rank 0", "let read twice", "let read elsewhere"),
    *("output read", "output written twice", "update in place", "read of itself"),
    *("compound assignment", "output of integers", "rank 0", "rank 3"),
    *("literal axis", "arithmetic axis", "reserved name"),
    *(
        "sum",
        "prod",
        "max",
        "min",
        "argmax",
        "argmin",
        "two indices",
        "reduction in a reduction",
    ),
    *("condition of a reduction", "condition by a key"),
    *("reduction to rank 0", "matrix product", "batched product", "softmax"),
    *("given range", "broadcast", "transpose", "diagonal"),
    *("gather", "gather by u32", "affine subscript", "constant subscript"),
    *("clamped subscript", "computed subscript", "dim as value", "index as value"),
    *("if", "else if", "comparison", "and or", "not", "select"),
    *(
        "+ -",
        "*",
        "/",
        "integer / %",
        "bits",
        "shift",
        "negation",
        "cast",
        "cast of truth",
    ),
    *("exact built-in", "rounding built-in", "bit built-in", "call of fn"),
)
"""Every construct that the table reports."""

_EXACT = frozenset(
    {"abs", "sign", "min", "max", "clamp", "saturate", "step"}
    | {"floor", "ceil", "round", "trunc"}
)
_ODD = frozenset((*RESERVED, *ODD_INDICES, *KERNELS[1:], *FUNCTIONS[3:]))
_CASTS = frozenset({"f32", "i32", "u32"})
_OPERATORS: Final = {
    **dict.fromkeys(("+", "-"), "+ -"),
    "*": "*",
    **dict.fromkeys(("&", "|", "^"), "bits"),
    **dict.fromkeys(("<<", ">>"), "shift"),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), "comparison"),
    **dict.fromkeys(("and", "or"), "and or"),
}


@dataclass(frozen=True)
class _Place:
    """Where an expression stands: its statement, the indices, an `if`, a reduction."""

    target: str = ""
    left: tuple[str, ...] = ()
    indices: frozenset[str] = frozenset()
    branch: bool = False
    reduced: bool = False
    subscript: bool = False


@dataclass
class _Collector:
    """Walks one program and notes what it finds."""

    kernel: ast.KernelItem
    functions: frozenset[str]
    found: set[str] = field(default_factory=set[str])
    types: dict[str, str] = field(default_factory=dict[str, str])
    lets: Counter[str] = field(default_factory=Counter[str])
    outputs: Counter[str] = field(default_factory=Counter[str])

    def items(self, program: ast.Program) -> None:
        """Note the items of the file, and what is in them."""
        for item in program.items:
            match item:
                case ast.ConstItem():
                    self.note("const")
                case ast.FunctionItem():
                    self.note("fn")
                    self.names(item.name)
                    if item.lets:
                        self.note("fn with let")
                    for let in item.lets:
                        self.expression(let.value, _Place())
                    self.expression(item.body, _Place())
                case ast.ScheduleItem():
                    self.note("schedule")
                    self.note(
                        "schedule of a stage",
                        really=any(target.stage for target in item.targets),
                    )
                case _:
                    pass

    def note(self, construct: str, *, really: bool = True) -> None:
        """Note a construct."""
        if really:
            assert construct in CONSTRUCTS or construct in TYPED, construct
            self.found.add(construct)

    def names(self, *identifiers: ast.Named) -> None:
        """Note names that mean something elsewhere."""
        self.note("reserved name", really=any(i.name in _ODD for i in identifiers))

    # The kernel

    def header(self) -> None:
        """Note the parameters and outputs."""
        self.names(self.kernel.name)
        for parameter in (*self.kernel.parameters, *self.kernel.outputs):
            name, type_ = parameter.name.name, parameter.type
            self.types[name] = type_.name.name
            self.note("f16", really=type_.name.name == "f16")
            self.names(parameter.name)
            if type_.axes is None:
                kind = f"scalar {type_.name.name}"
                self.note(kind, really=type_.name.name in _CASTS)
                self.note("vector", really=type_.name.name.startswith("vec"))
                self.note("default", really=parameter.default is not None)
                continue
            axes = type_.axes
            self.note("rank 0", really=not axes)
            self.note("rank 3", really=len(axes) > 2)
            self.note(
                "literal axis", really=any(isinstance(a, ast.Number) for a in axes)
            )
            self.note(
                "arithmetic axis", really=any(isinstance(a, ast.Binary) for a in axes)
            )
            self.note("update in place", really=parameter.mutable)
        outputs = self.kernel.outputs
        self.note("several outputs", really=len(outputs) > 1)
        integers = any(o.type.name.name in {"i32", "u32"} for o in outputs)
        self.note("output of integers", really=integers)

    def body(self) -> None:
        """Note the statements."""
        statements = [
            s for s in self.kernel.body if not isinstance(s, ast.HostStatement)
        ]
        self.note("several statements", really=len(statements) > 1)
        for statement in self.kernel.equations:
            self.names(statement.name)
            match statement:
                case ast.HostStatement():
                    self.note("host")
                case ast.LetStatement(binders=binders):
                    self.note("let")
                    self.note("let of rank 0", really=not binders)
                    self.binders(binders)
                    left = tuple(b.name.name for b in binders)
                    self._value(statement.name.name, left, statement.value)
                    self.lets[statement.name.name] = 0
                case ast.Assignment(subscripts=subscripts):
                    self.note("compound assignment", really=statement.op != "=")
                    left = tuple(s.name for s in subscripts if isinstance(s, ast.Name))
                    self._value(statement.name.name, left, statement.value)
                    self.outputs[statement.name.name] += 1
        written = {p.name.name for p in self.kernel.outputs}
        twice = any(self.outputs[name] > 1 for name in written)
        self.note("output written twice", really=twice)
        self.note("let read twice", really=any(n > 1 for n in self.lets.values()))
        bodies = [s.value for s in self.kernel.body if isinstance(s, ast.LetStatement)]
        kinds = [b.kind for b in bodies if isinstance(b, ast.Reduction)]
        self.note("softmax", really={"max", "sum"} <= set(kinds))

    def _value(self, target: str, left: tuple[str, ...], value: ast.Expr) -> None:
        self.expression(value, _Place(target, left, frozenset(left)))
        if not left and isinstance(value, ast.Reduction):
            self.note("reduction to rank 0")

    def binders(self, binders: Iterable[ast.Binder]) -> None:
        """Note how indices are introduced."""
        for binder in binders:
            self.names(binder.name)
            self.note("given range", really=binder.bound is not None)

    # Expressions

    def expression(self, expr: ast.Expr, place: _Place) -> None:
        """Note an expression and its parts."""
        match expr:
            case ast.Name(name=name):
                self._name(name, place)
            case ast.Subscript(base=ast.Name()):
                self._read(expr, place)
            case ast.Subscript(base=base, subscripts=subscripts):
                self.expression(base, place)
                for subscript in subscripts:
                    if _tensors(subscript, self.types):
                        self.expression(subscript, replace(place, subscript=True))
            case ast.Member(base=base):
                self.expression(base, place)
            case ast.Unary(op=op, operand=operand):
                self.note("not" if op == "not" else "negation")
                self.expression(operand, place)
            case ast.Binary():
                self._binary(expr, place)
            case ast.Conditional():
                self.note("if")
                otherwise = isinstance(expr.otherwise, ast.Conditional)
                self.note("else if", really=otherwise)
                self.expression(expr.condition, place)
                inside = replace(place, branch=True)
                self.expression(expr.then, inside)
                self.expression(expr.otherwise, inside)
            case ast.Call():
                self._call(expr, place)
            case ast.Reduction():
                self._reduction(expr, place)
            case _:
                pass

    def _name(self, name: str, place: _Place) -> None:
        if name in place.indices:
            self.note("index as value")
            return
        self._read_of(name)
        dims = {
            axis.name
            for p in self.kernel.parameters
            for axis in p.type.axes or ()
            if isinstance(axis, ast.Name)
        }
        self.note("dim as value", really=name in dims)

    def _read_of(self, name: str) -> None:
        if name in self.lets:
            self.lets[name] += 1
        self.note("output read", really=name in self.outputs)

    def _binary(self, expr: ast.Binary, place: _Place) -> None:
        if expr.op in {"/", "%"}:
            real = not self._whole(expr)
            self.note("/" if real else "integer / %")
        else:
            self.note(_OPERATORS[expr.op])
        self.expression(expr.left, place)
        guarded = expr.op in {"and", "or"}
        inside = replace(place, branch=True) if guarded else place
        self.expression(expr.right, inside)

    def _whole(self, expr: ast.Expr) -> bool:
        """Whether an expression is seen to be of integers."""
        match expr:
            case ast.Binary(left=left, right=right):
                return self._whole(left) or self._whole(right)
            case ast.Unary(operand=operand):
                return self._whole(operand)
            case ast.Subscript(base=ast.Name(name=name)) | ast.Name(name=name):
                return self.types.get(name) in {"i32", "u32"}
            case ast.Call(function=name):
                return name.name in {"i32", "u32"} or name.name in BITS
            case _:
                return False

    def _call(self, expr: ast.Call, place: _Place) -> None:
        name = expr.function.name
        match name:
            case _ if name in _CASTS:
                (argument,) = expr.arguments
                self.note("cast")
                truth = isinstance(argument, ast.Unary) and argument.op == "not"
                if isinstance(argument, ast.Binary):
                    truth = _OPERATORS.get(argument.op) in {"comparison", "and or"}
                self.note("cast of truth", really=truth)
            case "select":
                self.note("select")
            case _ if name in self.functions:
                self.note("call of fn")
            case _ if name in BITS:
                self.note("bit built-in")
            case _ if name in GEOMETRY or is_composite(name):
                pass
            case _:
                exact = name in _EXACT
                self.note("exact built-in" if exact else "rounding built-in")
        for argument in expr.arguments:
            self.expression(argument, place)

    def _reduction(self, expr: ast.Reduction, place: _Place) -> None:
        self.note(expr.kind)
        self.note("two indices", really=len(expr.binders) > 1)
        self.note("reduction in a reduction", really=place.reduced)
        self.binders(expr.binders)
        names = {b.name.name for b in expr.binders}
        inner = replace(place, indices=place.indices | names, reduced=True)
        match expr.body:
            case ast.Binary(ast.Subscript() as first, "*", ast.Subscript() as second):
                if expr.kind == "sum" and len(place.left) > 0:
                    self.note("matrix product")
                    batched = len(first.subscripts) > 2 or len(second.subscripts) > 2
                    self.note("batched product", really=batched)
            case _:
                pass
        if expr.condition is not None:
            self.note("condition of a reduction")
            by_key = (
                isinstance(expr.condition, ast.Binary) and expr.condition.op == "=="
            )
            self.note("condition by a key", really=by_key)
            self.expression(expr.condition, inner)
            inner = replace(inner, branch=True)
        self.expression(expr.body, inner)

    # Reads

    def _read(self, expr: ast.Subscript, place: _Place) -> None:
        assert isinstance(expr.base, ast.Name)
        name = expr.base.name
        bare = [
            s.name
            for s in expr.subscripts
            if isinstance(s, ast.Name) and s.name in place.indices
        ]
        whole = tuple(bare) == place.left and len(bare) == len(expr.subscripts)
        self._read_of(name)
        self.note("let read elsewhere", really=name in self.lets and not whole)
        self.note("read of itself", really=name == place.target and not whole)
        order = [place.left.index(n) for n in bare if n in place.left]
        self.note("transpose", really=order != sorted(order))
        self.note("diagonal", really=len(set(bare)) < len(bare))
        fewer = len(place.left) > 0 and 0 < len(set(bare) & set(place.left)) < len(
            place.left
        )
        self.note("broadcast", really=fewer and not place.reduced)
        for subscript in expr.subscripts:
            if not (isinstance(subscript, ast.Name) and subscript.name in bare):
                self._subscript(subscript, place)

    def _subscript(self, expr: ast.Expr, place: _Place) -> None:
        gathered = _tensors(expr, self.types)
        inside = replace(place, subscript=True)
        match expr:
            case _ if gathered:
                self.note("gather")
                unsigned = any(self.types.get(name) == "u32" for name in gathered)
                self.note("gather by u32", really=unsigned)
            case ast.Number():
                self.note("constant subscript")
            case ast.Binary(op="/" | "%") | ast.Call():
                self.note("computed subscript")
            case _:
                self.note("clamped subscript" if place.branch else "affine subscript")
        if gathered:
            self.expression(expr, inside)


def _tensors(expr: ast.Expr, types: dict[str, str]) -> list[str]:
    """Return the tensors that a subscript reads."""
    match expr:
        case ast.Subscript(base=ast.Name(name=name)):
            return [name]
        case ast.Binary(left=left, right=right):
            return [*_tensors(left, types), *_tensors(right, types)]
        case ast.Name(name=name) if types.get(name) in {"i32", "u32"}:
            return [name]
        case _:
            return []


def constructs_of(text: str) -> frozenset[str]:
    """Return the constructs that a program uses."""
    program = parse(Source("random.kern", text))
    kernel = next(i for i in program.items if isinstance(i, ast.KernelItem))
    functions = (i for i in program.items if isinstance(i, ast.FunctionItem))
    collector = _Collector(kernel, frozenset(f.name.name for f in functions))
    collector.header()
    collector.body()
    collector.items(program)
    return frozenset((*collector.found, *constructs_of_items(program, kernel)))


def table(counts: Counter[str], programs: int) -> str:
    """Return how many of the programs use each construct, as text."""
    names = (*CONSTRUCTS, *TYPED)
    rows = sorted((counts[name] / programs, name) for name in names)
    return "\n".join(f"{share:6.1%}  {name}" for share, name in rows)
