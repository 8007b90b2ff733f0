//! Kernels as PTX.

use crate::kernel::*;
use crate::operation::{DESTINATIONS, SOURCES};
use std::fmt::Write;

/// The module of some kernels.
pub fn module(kernels: &[Kernel], architecture: u32) -> String {
    let mut text = format!(".version 8.0\n.target sm_{architecture}\n.address_size 64\n");
    for kernel in kernels {
        Text::new(kernel, &mut text).kernel();
    }
    text
}

/// The statements of a kernel alone, for a report.
pub fn listing(kernel: &Kernel) -> String {
    let mut text = String::new();
    for (number, function) in kernel.functions.iter().enumerate().filter(|(_, function)| !function.body.is_empty()) {
        let _ = writeln!(text, "function f{}_{number}:", kernel.seed);
        Text::new(kernel, &mut text).statements(&function.body);
    }
    text.push_str("kernel:\n");
    Text::new(kernel, &mut text).statements(&kernel.body);
    text
}

const DECLARATIONS: &str = ".reg .b32 %r<8>, %k<4>, %t<8>, %c<8>, %lane, %slot, %place; .reg .b64 %d<6>, %m<2>, %u<4>, %base, %all, \
                            %frame, %address; .reg .b16 %h<4>, %s<4>; .reg .pred %p<4>, %q<4>;\n";

struct Text<'text> {
    kernel: &'text Kernel,
    text: &'text mut String,
    /// Labels that were made.
    labels: usize,
    /// Loops around the statement.
    loops: Vec<String>,
}

fn register(register: Register) -> String {
    let letter = match register.width {
        1 => 'p',
        16 => 'h',
        32 => 'r',
        _ => 'd',
    };
    format!("%{letter}{}", register.index)
}

fn operand(operand: Operand) -> String {
    match operand {
        Operand::Register(of) => register(of),
        Operand::Literal { bits, width: 64, is_float: true } => format!("0d{bits:016X}"),
        Operand::Literal { bits, is_float: true, .. } => format!("0f{bits:08X}"),
        Operand::Literal { bits, width, .. } => format!("{}", crate::values::meaning(bits, width, true)),
        Operand::Parameter(Register { width: 32, index }) => format!("%k{index}"),
        Operand::Parameter(Register { index, .. }) => format!("%m{index}"),
        Operand::Lane => "%lane".to_owned(),
    }
}

fn predicate(condition: Condition) -> String {
    format!("{}%p{}", if condition.negated { "!" } else { "" }, condition.predicate)
}

impl<'text> Text<'text> {
    fn new(kernel: &'text Kernel, text: &'text mut String) -> Self {
        Self { kernel, text, labels: 0, loops: Vec::new() }
    }

    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{};", line.as_ref());
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn place(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:");
    }

    /// Instructions under a predicate.
    fn guarded(&mut self, lines: &str, guard: Option<Condition>) {
        let guard = guard.map(|condition| format!("@{} ", predicate(condition))).unwrap_or_default();
        for line in lines.split(';') {
            self.line(format!("{guard}{}", line.trim()));
        }
    }

    fn function_name(&self, function: usize) -> String {
        format!("f{}_{function}", self.kernel.seed)
    }

    fn kernel(&mut self) {
        let kernel = self.kernel;
        for (number, function) in kernel.functions.iter().enumerate().rev() {
            self.function(number, function);
        }
        self.labels = 0;
        let name = kernel.name();
        let _ = writeln!(
            self.text,
            ".visible .entry {name}(.param .u64 memory, .param .b32 k0, .param .b32 k1, .param .b32 k2, .param .b32 k3, .param .b64 m0, \
             .param .b64 m1) {{\n{DECLARATIONS}.shared .align 16 .b8 exchange[{}]; .local .align 16 .b8 frame[{SCRATCH}];",
            THREADS * SCRATCH
        );
        self.kernel_start();
        self.statements(&kernel.body);
        self.kernel_end();
    }

    /// First values of registers and memories.
    fn kernel_start(&mut self) {
        self.line("ld.param.u64 %all, [memory]");
        for (width, count) in PARAMETERS {
            for index in 0..count {
                let letter = if width == 32 { 'k' } else { 'm' };
                self.line(format!("ld.param.b{width} %{letter}{index}, [{letter}{index}]"));
            }
        }
        self.line("mov.u32 %lane, %tid.x");
        self.line(format!("mad.wide.u32 %base, %lane, {RECORD}, %all"));
        self.line("mov.u32 %slot, exchange");
        self.line(format!("mad.lo.u32 %slot, %lane, {SCRATCH}, %slot"));
        self.line("mov.u64 %frame, frame");
        for ((width, count), first) in REGISTERS.into_iter().zip(INPUTS) {
            for index in 0..count {
                match width {
                    1 => {
                        self.line(format!("ld.global.u32 %t0, [%base+{first}]"));
                        self.line(format!("and.b32 %t0, %t0, {}", 1 << index));
                        self.line(format!("setp.ne.u32 %p{index}, %t0, 0"));
                    }
                    _ => {
                        let bytes = width as usize / 8;
                        let name = register(Register { width, index });
                        self.line(format!("ld.global.b{width} {name}, [%base+{}]", first + bytes * index));
                    }
                }
            }
        }
        for index in 0..SCRATCH / 4 {
            self.line(format!("st.shared.b32 [%slot+{}], %r{index}", 4 * index));
            self.line(format!("st.local.b32 [%frame+{}], %r{index}", 4 * index));
        }
    }

    /// Last values of registers.
    fn kernel_end(&mut self) {
        let mut place = RESULT_PLACE;
        for (width, count) in REGISTERS {
            for index in 0..count {
                let name = register(Register { width, index });
                match width {
                    1 => {
                        self.line(format!("selp.u32 %t0, 1, 0, {name}"));
                        self.line(format!("st.global.u8 [%base+{place}], %t0"));
                    }
                    _ => self.line(format!("st.global.b{width} [%base+{place}], {name}")),
                }
                place += (width as usize).div_ceil(8);
            }
        }
        self.line("ret");
        self.text.push_str("}\n");
    }

    fn function(&mut self, number: usize, function: &Function) {
        self.labels = 0;
        let name = self.function_name(number);
        let _ = writeln!(
            self.text,
            ".func (.param .b32 result) {name}(.param .b32 first, .param .b32 second, .param .b64 wide) {{\n{DECLARATIONS}\
             mov.u32 %lane, %tid.x; ld.param.b32 %r0, [first]; ld.param.b32 %r1, [second]; ld.param.b64 %d0, [wide];"
        );
        for index in 2..8 {
            self.line(format!("add.u32 %r{index}, %r{}, {}", index % 2, index / 2));
        }
        for index in 1..6 {
            self.line(format!("add.u64 %d{index}, %d0, {index}"));
        }
        self.line("mov.b64 {%h0, %h1, %h2, %h3}, %d0");
        for index in 0..4 {
            self.line(format!("and.b32 %t0, %r0, {}", 1 << index));
            self.line(format!("setp.ne.u32 %p{index}, %t0, 0"));
        }
        self.statements(&function.body);
        self.line("st.param.b32 [result], %r0");
        self.line("ret");
        self.text.push_str("}\n");
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Compute { operation, sources, destinations, guard } => {
                let mut lines = operation.text.clone();
                for (name, source) in SOURCES.into_iter().zip(sources) {
                    lines = lines.replace(name, &operand(*source));
                }
                for (name, destination) in DESTINATIONS.into_iter().zip(destinations) {
                    lines = lines.replace(name, &register(*destination));
                }
                self.guarded(&lines, *guard);
            }
            Statement::Choose { condition, then, otherwise } => {
                let (other, end) = (self.label(), self.label());
                let opposite = Condition { negated: !condition.negated, ..*condition };
                self.line(format!("@{} bra {other}", predicate(opposite)));
                self.statements(then);
                self.line(format!("bra {end}"));
                self.place(&other);
                self.statements(otherwise);
                self.place(&end);
            }
            Statement::Repeat { rounds, is_tested_first, body } => self.repeat(*rounds, *is_tested_first, body),
            Statement::Leave(condition) => {
                let end = self.loops.last().cloned().unwrap_or_default();
                self.line(format!("@{} bra {end}", predicate(*condition)));
            }
            Statement::Switch { selector, cases } => {
                let end = self.label();
                let labels: Vec<String> = cases.iter().map(|_| self.label()).collect();
                self.line(format!("and.b32 %t0, {}, 3", operand(*selector)));
                self.line(format!("{end}_targets: .branchtargets {}", labels.join(", ")));
                self.line(format!("brx.idx %t0, {end}_targets"));
                for ((case, goes_on), label) in cases.iter().zip(labels) {
                    self.place(&label);
                    self.statements(case);
                    if !goes_on {
                        self.line(format!("bra {end}"));
                    }
                }
                self.place(&end);
            }
            Statement::Call { functions, choice, arguments, destination } => {
                self.call(functions, *choice, *arguments, *destination);
            }
            Statement::Access(access) if matches!(access.action, Action::Copy) => self.copy(access),
            Statement::Access(access) => self.access(access),
            Statement::Reduce { reduction, place, value, guard } => {
                let lines = format!(
                    "and.b32 %t0, {}, 3; mad.wide.u32 %u0, %t0, 8, %all; red.global.{} [%u0+{}], {}",
                    operand(*place),
                    REDUCTIONS[*reduction],
                    COMMON_PLACE + 32 * reduction,
                    operand(*value)
                );
                self.guarded(&lines, *guard);
            }
            Statement::Together { collective, sources, destinations } => {
                self.together(collective, sources, destinations);
            }
        }
    }

    fn repeat(&mut self, rounds: Operand, is_tested_first: bool, body: &[Statement]) {
        let (begin, end) = (self.label(), self.label());
        let counter = format!("%c{}", self.loops.len());
        self.line(format!("and.b32 {counter}, {}, 3", operand(rounds)));
        self.place(&begin);
        if is_tested_first {
            self.line(format!("setp.eq.u32 %q0, {counter}, 0"));
            self.line(format!("@%q0 bra {end}"));
        }
        self.loops.push(end.clone());
        self.statements(body);
        self.loops.pop();
        if is_tested_first {
            self.line(format!("sub.u32 {counter}, {counter}, 1"));
            self.line(format!("bra {begin}"));
        } else {
            self.line(format!("setp.ne.u32 %q0, {counter}, 0"));
            self.line(format!("sub.u32 {counter}, {counter}, 1"));
            self.line(format!("@%q0 bra {begin}"));
        }
        self.place(&end);
    }

    fn call(&mut self, functions: &[usize], choice: Condition, arguments: [Operand; 3], destination: Register) {
        self.text.push_str("{ .param .b32 a; .param .b32 b; .param .b64 c; .param .b32 d;\n");
        for (argument, (name, (temporary, width))) in
            arguments.into_iter().zip(["a", "b", "c"].into_iter().zip([("%t0", 32), ("%t1", 32), ("%u0", 64)]))
        {
            self.line(format!("mov.b{width} {temporary}, {}", operand(argument)));
            self.line(format!("st.param.b{width} [{name}], {temporary}"));
        }
        match functions {
            [one] => self.line(format!("call (d), {}, (a, b, c)", self.function_name(*one))),
            _ => {
                for (index, function) in functions.iter().enumerate() {
                    self.line(format!("mov.u64 %u{index}, {}", self.function_name(*function)));
                }
                let order = if choice.negated { "%u1, %u0" } else { "%u0, %u1" };
                self.line(format!("selp.b64 %u0, {order}, %p{}", choice.predicate));
                let prototype = self.label();
                self.line(format!(
                    "{prototype}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, .param .b64 _)"
                ));
                self.line(format!("call (d), %u0, (a, b, c), {prototype}"));
            }
        }
        self.line(format!("ld.param.b32 {}, [d]", register(destination)));
        self.text.push_str("}\n");
    }

    fn access(&mut self, access: &Access) {
        let Access { space, action, bytes, signed, registers, place, guard } = access;
        let is_in_cluster = *space == Space::Cluster;
        let (space, base, offset) = match space {
            Space::Global => (".global", "%base", SCRATCH_PLACE),
            Space::Generic => ("", "%base", SCRATCH_PLACE),
            Space::Shared => (".shared", "%slot", 0),
            Space::Cluster => (".shared::cluster", "%slot", 0),
            Space::Local => (".local", "%frame", 0),
        };
        let (before, address) = match place {
            Ok(place) if is_in_cluster => (format!("add.u32 %place, {base}, {place}; "), "[%place]".to_owned()),
            Ok(place) => (String::new(), format!("[{base}+{}]", offset + place)),
            Err(source) => {
                let mask = SCRATCH - bytes * registers.len();
                let before = format!("and.b32 %place, {}, {mask}; ", operand(*source));
                match base {
                    "%slot" => (format!("{before}add.u32 %place, %place, {base}; "), "[%place]".to_owned()),
                    _ => {
                        let wide =
                            format!("{before}cvt.u64.u32 %address, %place; add.u64 %address, %address, {base}; ");
                        (wide, format!("[%address+{offset}]"))
                    }
                }
            }
        };
        // A kernel without clusters is a cluster of one CTA.
        let place_in_cluster = if is_in_cluster { "mapa.shared::cluster.u32 %place, %place, 0; " } else { "" };
        let names: Vec<String> = registers.iter().map(|of| register(*of)).collect();
        let (vector, list) = match names.len() {
            1 => (String::new(), names[0].clone()),
            count => (format!(".v{count}"), format!("{{{}}}", names.join(", "))),
        };
        let kind = crate::values::name(8 * *bytes as u32, *signed);
        let line = match action {
            Action::Load => format!("ld{space}{vector}.{kind} {list}, {address}"),
            Action::Store => format!("st{space}{vector}.{kind} {address}, {list}"),
            Action::Copy => unreachable!("a copy has a text of its own"),
            Action::Update { name, operands } => {
                let operands: Vec<String> = operands.iter().map(|of| operand(*of)).collect();
                format!("atom{space}.{name} {list}, {address}, {}", operands.join(", "))
            }
        };
        self.guarded(&format!("{before}{place_in_cluster}{line}"), *guard);
    }

    /// From the same place of the scratch in device memory.
    fn copy(&mut self, access: &Access) {
        let bytes = access.bytes;
        let place = match access.place {
            Ok(place) => format!("mov.u32 %place, {place}"),
            Err(source) => format!("and.b32 %place, {}, {}", operand(source), SCRATCH - bytes),
        };
        let lines = format!(
            "{place}; cvt.u64.u32 %address, %place; add.u64 %address, %address, %base; add.u32 %place, %place, %slot; \
             cp.async.ca.shared.global [%place], [%address+{SCRATCH_PLACE}], {bytes}; cp.async.wait_all"
        );
        self.guarded(&lines, access.guard);
    }

    fn together(&mut self, collective: &Collective, sources: &[Operand], destinations: &[Register]) {
        let a = operand(sources[0]);
        let d = register(destinations[0]);
        let both = destinations.iter().map(|of| register(*of)).collect::<Vec<_>>().join("|");
        let all = "0xffffffff";
        match collective {
            Collective::Exchange => self.guarded(
                &format!(
                    "st.shared.b32 [%slot], {a}; bar.sync 0; and.b32 %place, {}, 31; mov.u32 %t0, exchange; \
                     mad.lo.u32 %place, %place, {SCRATCH}, %t0; ld.shared.b32 {d}, [%place]; bar.sync 0",
                    operand(sources[1])
                ),
                None,
            ),
            Collective::Shuffle { mode, clamp } => {
                self.line(format!("shfl.sync.{mode}.b32 {both}, {a}, {}, {clamp}, {all}", operand(sources[1])));
            }
            Collective::Vote { mode } => self.line(format!("vote.sync.{mode}.pred {d}, {a}, {all}")),
            Collective::Ballot => self.line(format!("vote.sync.ballot.b32 {d}, {a}, {all}")),
            Collective::Match { all: true, width } => self.line(format!("match.all.sync.b{width} {both}, {a}, {all}")),
            Collective::Match { width, .. } => self.line(format!("match.any.sync.b{width} {d}, {a}, {all}")),
            Collective::Count => self.line(format!("barrier.red.popc.u32 {d}, 0, {a}")),
            Collective::Reduce { name } => self.line(format!("redux.sync.{name} {d}, {a}, {all}")),
            Collective::Elect => self.line(format!("elect.sync {both}, {all}")),
            Collective::Transpose => self.line(format!("movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a}")),
            Collective::Multiply { signed, saturates } => {
                let list = |names: &[String]| format!("{{{}}}", names.join(", "));
                let names: Vec<String> = sources.iter().map(|of| operand(*of)).collect();
                let results: Vec<String> = destinations.iter().map(|of| register(*of)).collect();
                let types = signed.map(|signed| if signed { "s8" } else { "u8" }).join(".");
                self.line(format!(
                    "mma.sync.aligned.m16n8k32.row.col{}.s32.{types}.s32 {}, {}, {}, {}",
                    if *saturates { ".satfinite" } else { "" },
                    list(&results),
                    list(&names[..4]),
                    list(&names[4..6]),
                    list(&names[6..])
                ));
            }
            Collective::BarrierVote { all } => {
                let mode = if *all { "and" } else { "or" };
                self.line(format!("barrier.red.{mode}.pred {d}, 0, {a}"));
            }
        }
    }
}
