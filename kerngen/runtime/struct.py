"""The base classes of generated structs: values as the bytes that shaders read.

A generated module declares a class for each `struct` of its source, and one for the
scalars of each kernel.  It states the layout three times: as fields with offsets, as a
size and as a NumPy dtype.  Importing the module checks that the three agree, so that a
file edited by hand cannot bind the wrong bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import DtypeError, ShapeError, UniformRangeError
from kerngen.runtime.values.codec import Codec, Readable, Writable, struct_dtype
from kerngen.runtime.values.conversion import Misfit, normalise, not_a, of_number
from kerngen.runtime.values.elements import Element, spaced
from kerngen.runtime.values.fields import Field, is_leaf
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.records import conform
from kerngen.runtime.values.shapes import Shape

__all__ = ["Field", "Struct", "UniformStruct", "spaced"]

Fit: TypeAlias = Callable[[object], object]
"""Checks a value, and returns it in its stored form: numbers in nested tuples."""
Flatten: TypeAlias = Callable[[Any], Iterable[Any]]
"""Lists the numbers in a field's stored form, one by one."""


class UniformStruct:
    """The base of generated dataclasses: structs, and the scalars of a kernel.

    A number is an attribute, a vector a tuple of numbers, a matrix a tuple of its columns, and
    a fixed array a tuple too; whatever NumPy takes for one of these is converted to it.  NaN
    and infinities are f32 and f16 values like any other; a finite number that the type cannot
    hold is refused, and so is an integer out of range.
    """

    __slots__ = ("_packed",)

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    SIZE: ClassVar[int] = 0
    DTYPE: ClassVar[np.dtype[Any]] = np.dtype([])
    _codec: ClassVar[Codec] = Codec("UniformStruct", (), 0)
    _fits: ClassVar[tuple[tuple[str, Fit], ...]] = ()
    _parts: ClassVar[tuple[tuple[str, Flatten | None], ...]] = ()
    _packed: tuple[type[UniformStruct], bytes]
    """The class by whose layout the values were last packed, and their bytes."""

    def __init_subclass__(cls) -> None:
        """Check the declared layout, and prepare to pack by it."""
        super().__init_subclass__()
        cls._codec = Codec(cls.__name__, cls.FIELDS, cls.SIZE)
        dtype = struct_dtype(cls.FIELDS, cls.SIZE)
        assert dtype == cls.DTYPE, f"{cls.__name__}: DTYPE and FIELDS disagree"
        cls._fits = tuple(
            (field.name, fit_of(field.type, field.lengths)) for field in cls.FIELDS
        )
        cls._parts = tuple((field.name, _flatten(field)) for field in cls.FIELDS)

    def __post_init__(self) -> None:
        """Check the field values, and store them as numbers in nested tuples."""
        for name, fit in self._fits:
            value = getattr(self, name)
            try:
                kept = fit(value)
            except Misfit as misfit:
                raise misfit.error(f"{type(self).__name__}.{name}") from None
            if kept is not value:
                object.__setattr__(self, name, kept)

    def pack(self) -> bytes:
        """Return the struct's bytes, padding zeroed."""
        return self.bytes_of(self)

    def pack_into(self, buffer: Writable, offset: int = 0) -> None:
        """Store the struct's bytes in `buffer` from `offset` on, with zeros as padding.

        Raises `ShapeError` if the buffer has no room for them there.
        """
        try:
            self._codec.pack_into(buffer, offset, self._flat(self))
        except struct.error as cause:
            name, nbytes = type(self).__name__, memoryview(buffer).nbytes
            raise ShapeError(
                f"'{name}' takes {self.SIZE} bytes, which don't fit a buffer of "
                f"{nbytes} at offset {offset}."
            ) from cause

    @classmethod
    def pack_values_into(
        cls, buffer: Writable, offset: int, values: tuple[Any, ...]
    ) -> None:
        """Store field values in `buffer` from `offset` on, in the layout of this class.

        Vectors and matrices are given flattened, column by column; nested structs as
        they are.
        """
        # `struct` refuses values that don't fit; which one it was is found only then.
        try:
            cls._codec.pack_into(buffer, offset, cls._with_bytes(values))
        except (struct.error, OverflowError) as cause:
            fault = cls._find_fault(values)
            if fault is None:
                raise
            raise fault from cause

    @classmethod
    def unpack(cls, data: Readable) -> Self:
        """Return the struct made of these bytes.

        Raises `ShapeError` unless there are `SIZE` of them.
        """
        return cls(**cls.values_in(data))

    @classmethod
    def bytes_of(cls, value: UniformStruct) -> bytes:
        """Return the bytes, in the layout of this class, of a value with the same fields.

        They are cached in the value, which never changes.
        """
        layout, data = getattr(value, "_packed", (None, b""))
        if layout is cls:
            return data
        data = cls._encoded(value)
        object.__setattr__(value, "_packed", (cls, data))
        return data

    @classmethod
    def _encoded(cls, value: UniformStruct) -> bytes:
        buffer = bytearray(cls.SIZE)
        cls._codec.pack_into(buffer, 0, cls._flat(value))
        return bytes(buffer)

    @classmethod
    def _flat(cls, value: UniformStruct) -> list[Any]:
        """Return the flat values for the codec: numbers, and structs as their bytes."""
        flat: list[Any] = []
        for name, flatten in cls._parts:
            part = getattr(value, name)
            if flatten is None:
                flat.append(part)
            else:
                flat += flatten(part)
        return flat

    @classmethod
    def _with_bytes(cls, values: tuple[Any, ...]) -> Sequence[Any]:
        """Return values with structs as their bytes."""
        structs = cls._codec.structs
        if not structs:
            return values
        flat = list(values)
        for number, layout in structs:
            flat[number] = _bytes(layout, flat[number])
        return flat

    @classmethod
    def values_in(cls, data: Readable) -> dict[str, Any]:
        """Return the values of all fields, by name, from a struct's bytes."""
        if (nbytes := memoryview(data).nbytes) != cls.SIZE:
            raise ShapeError(
                f"'{cls.__name__}' is unpacked from {cls.SIZE} bytes, not {nbytes}."
            )
        values = iter(cls._codec.unpack(data))
        return {field.name: _take(values, field) for field in cls.FIELDS}

    @classmethod
    def _find_fault(cls, values: Sequence[Any]) -> UniformRangeError | None:
        """Return the error of the first value that does not fit its field."""
        found = cls._codec.first_misfit(cls._with_bytes(tuple(values)))
        if found is None:
            return None
        # The value's position among the flat ones determines its field.
        number, value = found
        ends = 0
        for field in cls.FIELDS:
            ends += field.count
            if number < ends:
                return UniformRangeError(
                    f"'{cls.__name__}.{field.name}': expected a value of type "
                    f"'{field.spelling}', got {value!r}."
                )
        return None


class Struct(UniformStruct, Element):
    """The base of the classes of a source's structs, which are element types too.

    In uniform buffers a struct may have another layout.  If a kernel then takes one as a
    parameter, the kernel's module has a class with that layout, derived from the struct's own.
    `value_class` of both is the struct's own class: a value that is unpacked from another
    struct is an instance of it.
    """

    __slots__ = ()

    value_class: ClassVar[type[Struct]]

    def __init_subclass__(cls) -> None:
        """Set `value_class`, and check that its fields agree."""
        super().__init_subclass__()
        if cls.__base__ is Struct:
            cls.value_class = cls

    @classmethod
    def pack_array(cls, items: Iterable[Self]) -> NDArray[np.void]:
        """Return structs as an array of `DTYPE`, padding zeroed.

        Raises:
            DtypeError: If `items` are no instances of the class.
        """
        given = cast("object", items)
        if not isinstance(given, Iterable):
            name = cls.value_class.__name__
            raise DtypeError(
                f"Expected several instances of {name}, as [{name}(...)], got "
                f"{kind_of(items)}."
            )
        data = bytearray()
        for index, item in enumerate(items):
            check_instance(item, cls, (index,))
            data += cls._encoded(item)
        return np.frombuffer(data, cls.DTYPE)

    @classmethod
    def unpack_array(cls, records: NDArray[np.void]) -> list[Self]:
        """Return the structs in an array of records.

        The records' fields may be at other offsets than the struct's.
        """
        data = conform(records, cls).tobytes()
        starts = range(0, len(data), cls.SIZE)
        return [cls.unpack(data[start : start + cls.SIZE]) for start in starts]


def check_instance(item: object, element: type[Struct], at: Iterable[int]) -> None:
    """Refuse an array's item, at indices `at`, that is no instance of the struct's class."""
    wanted = element.value_class
    if not isinstance(item, wanted):
        path = "".join(f"[{index}]" for index in at)
        where = f" at {path}" if path else ""
        advice = f": write {wanted.__name__}(*values)" * isinstance(item, tuple | list)
        raise DtypeError(
            f"Expected instances of {wanted.__name__}, got {kind_of(item)}{where}{advice}."
        )


def fit_of(element: type[Element], lengths: Shape = ()) -> Fit:
    """Return a function that checks a value and returns it in its stored form.

    The function raises Misfit for a value that does not fit the element type, or, with
    `lengths`, the fixed array of it.
    """
    one: Fit = partial(_fit_struct, element)
    shape = lengths
    if is_leaf(element):
        one, shape = of_number(element.number), (*lengths, *element.shape)
    return partial(normalise, shape=shape, one=one) if shape else one


def _fit_struct(element: type[Element], value: object) -> Struct:
    wanted = _struct(element).value_class
    if not isinstance(value, wanted):
        raise not_a(wanted, value)
    if type(value) is wanted:
        return value
    # An instance of a derived class, as of one for a uniform layout, has the same fields.
    return wanted(**{field.name: getattr(value, field.name) for field in wanted.FIELDS})


def _flatten(field: Field) -> Flatten | None:
    """Return a function that lists a field's numbers, or None for a scalar.

    Vectors and matrices, the usual ones, are listed by functions in C.
    """
    depth = len(field.shape)
    if not is_leaf(field.type):
        return partial(_flatten_structs, field.type, depth)
    match depth:
        case 0:
            return None
        case 1:
            return tuple
        case 2:
            return chain.from_iterable
        case _:
            return partial(_flatten_to, depth)


def _flatten_to(depth: int, value: Any) -> Iterable[Any]:
    for _ in range(depth - 1):
        value = chain.from_iterable(value)
    return cast("Iterable[Any]", value)


def _flatten_structs(element: type[Element], depth: int, value: Any) -> Iterable[bytes]:
    values = _flatten_to(depth, value) if depth else (value,)
    return [_bytes(element, each) for each in values]


def _bytes(element: type[Element], value: Struct) -> bytes:
    return _struct(element).bytes_of(value)


def _struct(element: type[Element]) -> type[Struct]:
    return cast("type[Struct]", element)


def _take(values: Iterator[Any], field: Field) -> Any:
    """Take the value of a field from flat ones: a matrix is a tuple of its columns."""
    flat: list[Any] = list(islice(values, field.count))
    if not is_leaf(field.type):
        layout = _struct(field.type)
        flat = [layout.value_class(**layout.values_in(data)) for data in flat]
    # The innermost axis first: each turn joins runs of `length` items to tuples.
    for length in reversed(field.shape):
        flat = list(zip(*[iter(flat)] * length, strict=True))
    return flat[0]
