//! The dotted words that qualify an instruction, other than types.

use super::types::{StateSpace, spelled_enum};

spelled_enum! {
    /// One dotted word of an instruction. A word with two meanings (`.lo` of `mul` and of `setp`) is one value:
    /// the opcode says which is meant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u16)]
    Modifier {
        // State spaces.
        Const = "const", Global = "global", Local = "local", Param = "param", ParamEntry = "param::entry",
        ParamFunc = "param::func", Shared = "shared", SharedCta = "shared::cta", SharedCluster = "shared::cluster",
        // Rounding.
        Rn = "rn", Rna = "rna", Rz = "rz", Rm = "rm", Rp = "rp", Rs = "rs",
        Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
        // Arithmetic.
        Ftz = "ftz", Noftz = "noftz", Sat = "sat", Satfinite = "satfinite", Relu = "relu", XorSign = "xorsign",
        AbsoluteValue = "abs", NaN = "NaN", Approx = "approx", Full = "full", Hi = "hi", Lo = "lo", Wide = "wide",
        Cc = "cc", Pack = "pack",
        // Comparison.
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", Ls = "ls", Hs = "hs", Equ = "equ",
        Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu", Num = "num", Nan = "nan",
        // Boolean, atomic and reduction operations.
        And = "and", Or = "or", Xor = "xor", Popc = "popc", Add = "add", Inc = "inc", Dec = "dec", Min = "min",
        Max = "max", Exch = "exch", Cas = "cas",
        // Classes that testp knows.
        Finite = "finite", Infinite = "infinite", Number = "number", NotANumber = "notanumber", Normal = "normal",
        Subnormal = "subnormal",
        // Shifts, bit fields, byte permutation.
        Wrap = "wrap", Clamp = "clamp", L = "l", R = "r", ShiftAmount = "shiftamt",
        F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16",
        // Video instructions.
        PlusOne = "po", Shr7 = "shr7", Shr15 = "shr15",
        // Cache operators and eviction.
        Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt", Nc = "nc",
        L1 = "L1", L2 = "L2", L1EvictNormal = "L1::evict_normal", L1EvictUnchanged = "L1::evict_unchanged",
        L1EvictFirst = "L1::evict_first", L1EvictLast = "L1::evict_last", L1NoAllocate = "L1::no_allocate",
        L2EvictNormal = "L2::evict_normal", L2EvictUnchanged = "L2::evict_unchanged",
        L2EvictFirst = "L2::evict_first", L2EvictLast = "L2::evict_last", L2CacheHint = "L2::cache_hint",
        L2Prefetch64 = "L2::64B", L2Prefetch128 = "L2::128B", L2Prefetch256 = "L2::256B",
        Fractional = "fractional", Range = "range", CvtPolicy = "cvt",
        // Memory order and scope.
        Weak = "weak", Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcquireRelease = "acq_rel",
        SequentiallyConsistent = "sc", Volatile = "volatile", Mmio = "mmio", Unified = "unified",
        Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", Gl = "gl",
        Proxy = "proxy", ProxyAlias = "proxy::alias", Alias = "alias", Async = "async", AsyncGlobal = "async::global",
        AsyncGeneric = "async::generic", GenericAsync = "generic::async", ProxyAsync = "proxy::async",
        TensormapGeneric = "tensormap::generic", MbarrierInitFence = "mbarrier_init",
        SyncRestrictSharedCta = "sync_restrict::shared::cta",
        SyncRestrictSharedCluster = "sync_restrict::shared::cluster",
        // Vectors.
        V2 = "v2", V4 = "v4", V8 = "v8",
        // Addresses.
        To = "to",
        // Warp-wide operations, barriers, control.
        Up = "up", Down = "down", Bfly = "bfly", Idx = "idx", Sync = "sync", All = "all", Any = "any", Uni = "uni",
        Ballot = "ballot", Warp = "warp", Arrive = "arrive", Red = "red", Aligned = "aligned", Wait = "wait",
        Mask = "mask",
        // Asynchronous copies and mbarrier.
        CommitGroup = "commit_group", WaitGroup = "wait_group", WaitAll = "wait_all", Bulk = "bulk",
        Prefetch = "prefetch", Tensor = "tensor", Reduce = "reduce", Mbarrier = "mbarrier", Noinc = "noinc",
        Init = "init", Inval = "inval", ExpectTx = "expect_tx", CompleteTx = "complete_tx",
        ArriveDrop = "arrive_drop", TestWait = "test_wait", TryWait = "try_wait", PendingCount = "pending_count",
        NoComplete = "noComplete", Parity = "parity", CompleteTxBytes = "mbarrier::complete_tx::bytes",
        MulticastCluster = "multicast::cluster", BulkGroup = "bulk_group", Read = "read", CpMask = "cp_mask",
        IgnoreOutOfBounds = "ignore_oob", Tile = "tile", Im2col = "im2col", Tensormap = "tensormap",
        Im2colWithoutOffsets = "im2col_no_offs",
        // Fields of tensor maps.
        Replace = "replace", CopyFenceProxy = "cp_fenceproxy", GlobalAddress = "global_address", Rank = "rank",
        BoxDim = "box_dim", GlobalDim = "global_dim", GlobalStride = "global_stride",
        ElementStride = "element_stride", ElementTypeField = "elemtype", InterleaveLayout = "interleave_layout",
        SwizzleMode = "swizzle_mode", FillMode = "fill_mode",
        // Textures and surfaces.
        D1 = "1d", D2 = "2d", D3 = "3d", D4 = "4d", D5 = "5d", A1d = "a1d", A2d = "a2d", Cube = "cube",
        Acube = "acube", D2ms = "2dms", A2dms = "a2dms", Base = "base", Level = "level", Grad = "grad",
        G = "g", Trap = "trap", Zero = "zero", P = "p",
        Width = "width", Height = "height", Depth = "depth", ChannelDataType = "channel_data_type",
        ChannelOrder = "channel_order", NormalizedCoords = "normalized_coords", ArraySize = "array_size",
        NumMipmapLevels = "num_mipmap_levels", NumSamples = "num_samples",
        ForceUnnormalizedCoords = "force_unnormalized_coords", FilterMode = "filter_mode",
        AddrMode0 = "addr_mode_0", AddrMode1 = "addr_mode_1", AddrMode2 = "addr_mode_2",
        MemoryLayout = "memory_layout",
        // Matrices. `.a` and `.b` are also components of a texel.
        Load = "load", Store = "store", Mma = "mma", A = "a", B = "b", C = "c", D = "d", Row = "row", Col = "col",
        Sp = "sp", SpOrderedMetadata = "sp::ordered_metadata", BlockScale = "block_scale",
        KindF8f6f4 = "kind::f8f6f4", KindMxf8f6f4 = "kind::mxf8f6f4", KindMxf4 = "kind::mxf4",
        KindMxf4nvf4 = "kind::mxf4nvf4", ScaleVec1x = "scale_vec::1X", ScaleVec2x = "scale_vec::2X",
        ScaleVec4x = "scale_vec::4X", Trans = "trans", X1 = "x1", X2 = "x2", X4 = "x4",
        B8x16 = "b8x16", B6x16P32 = "b6x16_p32", B4x16P64 = "b4x16_p64",
        M8n8 = "m8n8", M8n16 = "m8n16", M16n8 = "m16n8", M16n16 = "m16n16",
        M8n8k4 = "m8n8k4", M8n8k16 = "m8n8k16", M8n8k32 = "m8n8k32", M8n8k64 = "m8n8k64", M8n8k128 = "m8n8k128",
        M16n8k4 = "m16n8k4", M16n8k8 = "m16n8k8", M16n8k16 = "m16n8k16", M16n8k32 = "m16n8k32",
        M16n8k64 = "m16n8k64", M16n8k128 = "m16n8k128", M16n8k256 = "m16n8k256",
        M16n16k8 = "m16n16k8", M16n16k16 = "m16n16k16", M8n32k16 = "m8n32k16", M32n8k16 = "m32n8k16",
        // Matrices of groups of four warps.
        MmaAsync = "mma_async", FenceOfGroup = "fence",
        M64n8k8 = "m64n8k8", M64n8k16 = "m64n8k16", M64n8k32 = "m64n8k32", M64n8k64 = "m64n8k64",
        M64n16k8 = "m64n16k8", M64n16k16 = "m64n16k16", M64n16k32 = "m64n16k32", M64n16k64 = "m64n16k64",
        M64n24k8 = "m64n24k8", M64n24k16 = "m64n24k16", M64n24k32 = "m64n24k32", M64n24k64 = "m64n24k64",
        M64n32k8 = "m64n32k8", M64n32k16 = "m64n32k16", M64n32k32 = "m64n32k32", M64n32k64 = "m64n32k64",
        M64n40k8 = "m64n40k8", M64n40k16 = "m64n40k16", M64n40k32 = "m64n40k32", M64n40k64 = "m64n40k64",
        M64n48k8 = "m64n48k8", M64n48k16 = "m64n48k16", M64n48k32 = "m64n48k32", M64n48k64 = "m64n48k64",
        M64n56k8 = "m64n56k8", M64n56k16 = "m64n56k16", M64n56k32 = "m64n56k32", M64n56k64 = "m64n56k64",
        M64n64k8 = "m64n64k8", M64n64k16 = "m64n64k16", M64n64k32 = "m64n64k32", M64n64k64 = "m64n64k64",
        M64n72k8 = "m64n72k8", M64n72k16 = "m64n72k16", M64n72k32 = "m64n72k32", M64n72k64 = "m64n72k64",
        M64n80k8 = "m64n80k8", M64n80k16 = "m64n80k16", M64n80k32 = "m64n80k32", M64n80k64 = "m64n80k64",
        M64n88k8 = "m64n88k8", M64n88k16 = "m64n88k16", M64n88k32 = "m64n88k32", M64n88k64 = "m64n88k64",
        M64n96k8 = "m64n96k8", M64n96k16 = "m64n96k16", M64n96k32 = "m64n96k32", M64n96k64 = "m64n96k64",
        M64n104k8 = "m64n104k8", M64n104k16 = "m64n104k16", M64n104k32 = "m64n104k32", M64n104k64 = "m64n104k64",
        M64n112k8 = "m64n112k8", M64n112k16 = "m64n112k16", M64n112k32 = "m64n112k32", M64n112k64 = "m64n112k64",
        M64n120k8 = "m64n120k8", M64n120k16 = "m64n120k16", M64n120k32 = "m64n120k32", M64n120k64 = "m64n120k64",
        M64n128k8 = "m64n128k8", M64n128k16 = "m64n128k16", M64n128k32 = "m64n128k32", M64n128k64 = "m64n128k64",
        M64n136k8 = "m64n136k8", M64n136k16 = "m64n136k16", M64n136k32 = "m64n136k32", M64n136k64 = "m64n136k64",
        M64n144k8 = "m64n144k8", M64n144k16 = "m64n144k16", M64n144k32 = "m64n144k32", M64n144k64 = "m64n144k64",
        M64n152k8 = "m64n152k8", M64n152k16 = "m64n152k16", M64n152k32 = "m64n152k32", M64n152k64 = "m64n152k64",
        M64n160k8 = "m64n160k8", M64n160k16 = "m64n160k16", M64n160k32 = "m64n160k32", M64n160k64 = "m64n160k64",
        M64n168k8 = "m64n168k8", M64n168k16 = "m64n168k16", M64n168k32 = "m64n168k32", M64n168k64 = "m64n168k64",
        M64n176k8 = "m64n176k8", M64n176k16 = "m64n176k16", M64n176k32 = "m64n176k32", M64n176k64 = "m64n176k64",
        M64n184k8 = "m64n184k8", M64n184k16 = "m64n184k16", M64n184k32 = "m64n184k32", M64n184k64 = "m64n184k64",
        M64n192k8 = "m64n192k8", M64n192k16 = "m64n192k16", M64n192k32 = "m64n192k32", M64n192k64 = "m64n192k64",
        M64n200k8 = "m64n200k8", M64n200k16 = "m64n200k16", M64n200k32 = "m64n200k32", M64n200k64 = "m64n200k64",
        M64n208k8 = "m64n208k8", M64n208k16 = "m64n208k16", M64n208k32 = "m64n208k32", M64n208k64 = "m64n208k64",
        M64n216k8 = "m64n216k8", M64n216k16 = "m64n216k16", M64n216k32 = "m64n216k32", M64n216k64 = "m64n216k64",
        M64n224k8 = "m64n224k8", M64n224k16 = "m64n224k16", M64n224k32 = "m64n224k32", M64n224k64 = "m64n224k64",
        M64n232k8 = "m64n232k8", M64n232k16 = "m64n232k16", M64n232k32 = "m64n232k32", M64n232k64 = "m64n232k64",
        M64n240k8 = "m64n240k8", M64n240k16 = "m64n240k16", M64n240k32 = "m64n240k32", M64n240k64 = "m64n240k64",
        M64n248k8 = "m64n248k8", M64n248k16 = "m64n248k16", M64n248k32 = "m64n248k32", M64n248k64 = "m64n248k64",
        M64n256k8 = "m64n256k8", M64n256k16 = "m64n256k16", M64n256k32 = "m64n256k32", M64n256k64 = "m64n256k64",
        M64n8k256 = "m64n8k256", M64n16k256 = "m64n16k256", M64n24k256 = "m64n24k256", M64n32k256 = "m64n32k256",
        M64n48k256 = "m64n48k256", M64n64k256 = "m64n64k256", M64n80k256 = "m64n80k256", M64n96k256 = "m64n96k256",
        M64n112k256 = "m64n112k256", M64n128k256 = "m64n128k256", M64n144k256 = "m64n144k256",
        M64n160k256 = "m64n160k256", M64n176k256 = "m64n176k256", M64n192k256 = "m64n192k256",
        M64n208k256 = "m64n208k256", M64n224k256 = "m64n224k256", M64n240k256 = "m64n240k256",
        M64n256k256 = "m64n256k256",
        // Others.
        LaunchDependents = "launch_dependents", ScaledN2Ue8m0 = "scaled::n2::ue8m0",
        LdReduce = "ld_reduce", St = "st", AccF32 = "acc::f32", AccF16 = "acc::f16",
        // Any word of an instruction whose words are not checked yet (`tcgen05` and such); its text is
        // in the source at the instruction's span.
        Other = "?",
    }
}

impl Modifier {
    /// The state space that it names.
    pub const fn state_space(self) -> Option<StateSpace> {
        Some(match self {
            Self::Const => StateSpace::Constant,
            Self::Global => StateSpace::Global,
            Self::Local => StateSpace::Local,
            Self::Param => StateSpace::Parameter,
            Self::ParamEntry => StateSpace::KernelParameter,
            Self::ParamFunc => StateSpace::FunctionParameter,
            Self::Shared => StateSpace::Shared,
            Self::SharedCta => StateSpace::SharedCta,
            Self::SharedCluster => StateSpace::SharedCluster,
            _ => return None,
        })
    }

    /// Columns and depth of a product by a group of four warps, whose result has 64 rows: 128 and 16 of `m64n128k16`.
    pub fn group_shape(self) -> Option<[u32; 2]> {
        let (columns, depth) = self.name().strip_prefix("m64n")?.split_once('k')?;
        Some([columns.parse().ok()?, depth.parse().ok()?])
    }

    /// How many elements a vector access has: 2, 4 or 8.
    pub const fn vector_length(self) -> Option<u32> {
        match self {
            Self::V2 => Some(2),
            Self::V4 => Some(4),
            Self::V8 => Some(8),
            _ => None,
        }
    }

    /// Whether it compares (`setp`, `set`). `lo` and `hi` compare too, where the opcode does.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Eq
                | Self::Ne
                | Self::Lt
                | Self::Le
                | Self::Gt
                | Self::Ge
                | Self::Lo
                | Self::Ls
                | Self::Hi
                | Self::Hs
                | Self::Equ
                | Self::Neu
                | Self::Ltu
                | Self::Leu
                | Self::Gtu
                | Self::Geu
                | Self::Num
                | Self::Nan
        )
    }

    /// Whether it sets the rounding of a result (to a float or to an integral value).
    pub const fn is_rounding(self) -> bool {
        matches!(
            self,
            Self::Rn
                | Self::Rna
                | Self::Rz
                | Self::Rm
                | Self::Rp
                | Self::Rs
                | Self::Rni
                | Self::Rzi
                | Self::Rmi
                | Self::Rpi
        )
    }

    /// Whether it names a scope of threads (`.gl` is the scope of `membar` that `.gpu` is elsewhere).
    pub const fn is_scope(self) -> bool {
        matches!(self, Self::Cta | Self::Cluster | Self::Gpu | Self::Sys | Self::Gl)
    }
}
