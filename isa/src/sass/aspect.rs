//! What modifiers say, by names that do not depend on where their bits are.

/// What a modifier says of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Nothing: it is a part of the name.
    Name,

    // Of arithmetic.
    /// Subnormal operands and results become zero (`.FTZ`), or zero times anything zero (`.FMZ`).
    Flush,
    /// The result is limited.
    Saturate,
    /// How the result is rounded.
    Rounding,
    /// The power of two that a product is multiplied with.
    Scale,
    /// Which function, which operation.
    Operation,
    /// Which comparison.
    Comparison,
    /// How the outcome is combined with the predicate that is read.
    Boolean,
    /// The result of a comparison is 1.0 rather than all bits.
    BooleanFloat,
    /// Integers are unsigned.
    Unsigned,
    /// The carry is added.
    Carry,
    /// The comparison goes on from one of the lower halves (`.EX`); an address has 64 bits (`.E`).
    Extended,
    /// The sign of 32 bits is extended.
    ExtendedSign,
    /// The upper half of the result.
    High,
    /// The result is added to what was there.
    Accumulate,
    /// A shift goes to the left or to the right.
    Direction,
    /// A count beyond the width wraps around.
    Wrap,
    /// The result is the amount to shift by.
    ShiftAmount,
    /// The predicate is the conjunction over the bits.
    PredicateAnd,
    /// Values of 64 bits.
    Wide,
    /// The type of operands and result, where it is one.
    Type,
    /// The type of the operand.
    SourceType,
    /// The type of the result.
    ResultType,
    /// The type of the first of two operands.
    FirstType,
    /// The type of the second.
    SecondType,
    /// NaN becomes zero.
    NanToZero,
    /// A NaN among the operands is the result.
    Nan,
    /// The result has the sign of the product of the operands.
    ExclusiveSign,
    /// A negative result becomes zero.
    Relu,
    /// How values are packed into a register, or unpacked.
    Packing,
    /// The upper half of a source is the lower one, negated.
    NegateUpper,
    /// The predicate is of both halves together.
    BothHalves,
    /// The byte of a register.
    Byte,

    // Of matrices.
    /// The sizes of matrices and images.
    Shape,
    /// The part of a product.
    Step,
    /// How matrices are stored.
    Layout,
    /// How many there are.
    Count,
    /// The elements in a row of the first matrix, which are those in a column of the second.
    Depth,
    /// Half of the elements of the first matrix are stored.
    Sparse,
    /// The first matrix is negated.
    NegateFirst,
    /// The second is.
    NegateSecond,
    /// The first matrix is stored by columns.
    TransposeFirst,
    /// The second is stored by rows.
    TransposeSecond,
    /// The group of products that ends with this one.
    Group,

    // Of memory.
    /// Bytes of an access.
    Size,
    /// The order among accesses.
    Order,
    /// The threads that the order is about.
    Scope,
    /// The eviction priority of the line.
    Eviction,
    /// How much the L2 fetches.
    Prefetch,
    /// Copies go past the L1.
    Bypass,
    /// Where nothing is copied, zeros are written.
    ZeroFill,
    /// Which cache.
    Cache,
    /// Which space.
    Space,
    /// From which space.
    SourceSpace,
    /// To all CTAs of a mask.
    Multicast,
    /// What an arrival at a barrier changes: arrivals, or bytes of transactions, or both.
    Arrival,
    /// The arrival has no result.
    NoResult,
    /// The threads are no longer expected at the barrier.
    Drop,
    /// The threads that arrive are those of a mask.
    ThreadMask,
    /// It waits for some time, rather than test once.
    Wait,

    // Of textures and surfaces.
    /// The handle is in a register.
    Bindless,
    /// Coordinates are spread over two operands.
    Scalars,
    /// The level of detail.
    Level,
    /// The component that is gathered; the components that are stored.
    Component,
    /// Offsets of the coordinates.
    Offsets,
    /// An offset for each texel that is gathered.
    OffsetsOfTexels,
    /// Depths are compared.
    DepthComparison,
    /// The level is limited.
    Clamp,
    /// One of several samples is read.
    Samples,
    /// No derivatives are taken.
    NoDerivative,
    /// Nothing depends on it.
    NoDependence,
    /// The effect outside of the surface.
    Outside,
    /// The place counts bytes.
    ByBytes,

    // Of control flow.
    /// Whether the stack of calls is counted.
    CallCount,
    /// The target is absolute.
    Absolute,
    /// The barrier is cleared.
    Clear,
    /// No handler runs at the exit.
    NoExitHandler,
    /// Waiting lets others go on.
    DeferBlocking,
    /// A random time.
    Random,
    /// Of the warp.
    Warp,
    /// Which half of a pair.
    Half,
    /// A variant that is the opcode's own.
    Mode,
}
