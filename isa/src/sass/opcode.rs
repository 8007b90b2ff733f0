//! Names of instructions.

/// Declares the opcodes with their names.
macro_rules! opcodes {
    ($($opcode:ident $name:literal),* $(,)?) => {
        /// An opcode of the machine code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Opcode {
            $(#[doc = concat!("`", $name, "`")] $opcode,)*
        }

        impl Opcode {
            /// All of them.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$opcode),*];

            /// Its name without modifiers.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Opcode::$opcode => $name,)*
                }
            }
        }
    };
}

opcodes! {
    Imad "IMAD",
    ImadWide "IMAD.WIDE",
    ImadHigh "IMAD.HI",
    Iadd3 "IADD3",
    Isetp "ISETP",
    Lop3 "LOP3",
    Shf "SHF",
    Lea "LEA",
    Sel "SEL",
    Imnmx "IMNMX",
    Iabs "IABS",
    Prmt "PRMT",
    Mov "MOV",
    Popc "POPC",
    Flo "FLO",
    Brev "BREV",
    Bmsk "BMSK",
    Sgxt "SGXT",
    Idp "IDP",
    Vabsdiff "VABSDIFF",
    Vabsdiff4 "VABSDIFF4",
    Ffma "FFMA",
    Fadd "FADD",
    Fmul "FMUL",
    Fsetp "FSETP",
    Fsel "FSEL",
    Fmnmx "FMNMX",
    Fchk "FCHK",
    Fset "FSET",
    Mufu "MUFU",
    Fswzadd "FSWZADD",
    Dfma "DFMA",
    Dadd "DADD",
    Dmul "DMUL",
    Dsetp "DSETP",
    Hadd2 "HADD2",
    Hfma2 "HFMA2",
    Hfma2Mma "HFMA2.MMA",
    Hmnmx2 "HMNMX2",
    Hmul2 "HMUL2",
    Hsetp2 "HSETP2",
    Hset2 "HSET2",
    HmmaStep "HMMA",
    Hmma "HMMA",
    Imma "IMMA",
    Bmma "BMMA",
    Dmma "DMMA",
    Qmma "QMMA",
    Movm "MOVM",
    I2f "I2F",
    I2fp "I2FP",
    F2i "F2I",
    F2f "F2F",
    F2fp "F2FP",
    Frnd "FRND",
    I2i "I2I",
    I2ip "I2IP",
    P2r "P2R",
    R2p "R2P",
    Up2ur "UP2UR",
    Ur2up "UR2UP",
    Plop3 "PLOP3",
    Vote "VOTE",
    Match "MATCH",
    Shfl "SHFL",
    S2r "S2R",
    Cs2r "CS2R",
    S2ur "S2UR",
    R2ur "R2UR",
    Ldg "LDG",
    Stg "STG",
    Lds "LDS",
    Sts "STS",
    Ldl "LDL",
    Stl "STL",
    Ld "LD",
    St "ST",
    Ldc "LDC",
    Ldsm "LDSM",
    Atom "ATOM",
    Atomg "ATOMG",
    Atoms "ATOMS",
    Red "RED",
    Redg "REDG",
    Redux "REDUX",
    Ldgsts "LDGSTS",
    Ldgdepbar "LDGDEPBAR",
    Arrives "ARRIVES",
    Membar "MEMBAR",
    Errbar "ERRBAR",
    Cctl "CCTL",
    Qspc "QSPC",
    Tex "TEX",
    Tld "TLD",
    Tld4 "TLD4",
    Tmml "TMML",
    Txd "TXD",
    Txq "TXQ",
    Suld "SULD",
    Sust "SUST",
    Suatom "SUATOM",
    Sured "SURED",
    Bra "BRA",
    Brx "BRX",
    Brxu "BRXU",
    Jmp "JMP",
    Jmx "JMX",
    Jmxu "JMXU",
    Call "CALL",
    Ret "RET",
    Exit "EXIT",
    Bssy "BSSY",
    Bsync "BSYNC",
    Break "BREAK",
    Bmov "BMOV",
    Warpsync "WARPSYNC",
    Endcollective "ENDCOLLECTIVE",
    Yield "YIELD",
    Nanosleep "NANOSLEEP",
    Nop "NOP",
    Lepc "LEPC",
    Bpt "BPT",
    Pmtrig "PMTRIG",
    Kill "KILL",
    Depbar "DEPBAR",
    Bar "BAR",
    B2r "B2R",
    Rpcmov "RPCMOV",
    Uldc "ULDC",
    Uiadd3 "UIADD3",
    Umov "UMOV",
    Uimad "UIMAD",
    UimadWide "UIMAD.WIDE",
    Ushf "USHF",
    Voteu "VOTEU",
    Ulop3 "ULOP3",
    Ulea "ULEA",
    Uisetp "UISETP",
    Usel "USEL",
    Uflo "UFLO",
    Uplop3 "UPLOP3",
    Uprmt "UPRMT",
    Upopc "UPOPC",
    Ubrev "UBREV",
    Ubmsk "UBMSK",
    Usgxt "USGXT",
}

impl Opcode {
    /// Whether code may go on elsewhere behind it, or not at all: branches, calls, returns, exits.
    pub const fn is_jump(self) -> bool {
        matches!(
            self,
            Opcode::Bra
                | Opcode::Brx
                | Opcode::Jmx
                | Opcode::Brxu
                | Opcode::Jmxu
                | Opcode::Call
                | Opcode::Ret
                | Opcode::Exit
        )
    }
}
