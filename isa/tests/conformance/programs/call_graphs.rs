//! Random functions that call each other, directly, through tables and back to themselves, with branches, loops, switches, early returns
//! and exits: a warp computes the same as an interpreter that runs one lane after the other.

use super::calls::{load, words};
use crate::machine::run;

const FUNCTIONS: usize = 4;
/// Variables of a function: the first is its argument, the last its result.
const VARIABLES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Multiply,
    Xor,
}

#[derive(Clone, Debug)]
enum Statement {
    /// `to = from operation number`
    Compute {
        to: usize,
        from: usize,
        operation: Operation,
        number: u32,
    },
    /// `to ^= from`
    Mix {
        to: usize,
        from: usize,
    },
    /// Whether the low bits of a variable are below a limit.
    If {
        variable: usize,
        limit: u32,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    /// As often as the low two bits of a variable say; left early where those of another are 3.
    Loop {
        variable: usize,
        leave: usize,
        body: Vec<Statement>,
    },
    Switch {
        variable: usize,
        cases: Vec<Vec<Statement>>,
    },
    /// Not at the deepest level.
    Call {
        function: usize,
        argument: usize,
        to: usize,
    },
    /// The function whose number a variable says.
    CallThrough {
        variable: usize,
        argument: usize,
        to: usize,
    },
    /// Where the low bits of a variable are below a limit.
    Return {
        variable: usize,
        limit: u32,
    },
    Exit {
        variable: usize,
        limit: u32,
    },
}

/// What the lanes have in their low bits.
const LOW: u32 = 15;

struct Random(u64);

impl Random {
    fn below(&mut self, count: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) % u64::from(count)) as u32
    }

    fn variable(&mut self) -> usize {
        self.below(VARIABLES as u32) as usize
    }

    fn block(&mut self, depth: u32, calls: &mut u32) -> Vec<Statement> {
        (0..1 + self.below(4)).map(|_| self.statement(depth, calls)).collect()
    }

    fn statement(&mut self, depth: u32, calls: &mut u32) -> Statement {
        let kind = self.below(14);
        let (to, from, variable) = (self.variable(), self.variable(), self.variable());
        match kind {
            3 | 4 if depth > 0 => Statement::If {
                variable,
                limit: self.below(LOW + 1),
                then: self.block(depth - 1, calls),
                otherwise: self.block(depth - 1, calls),
            },
            5 if depth > 0 => Statement::Loop { variable, leave: from, body: self.block(depth - 1, calls) },
            6 if depth > 0 => {
                Statement::Switch { variable, cases: (0..4).map(|_| self.block(depth - 1, calls)).collect() }
            }
            7 | 8 if *calls > 0 => {
                *calls -= 1;
                Statement::Call { function: self.below(FUNCTIONS as u32) as usize, argument: from, to }
            }
            9 | 10 if *calls > 0 => {
                *calls -= 1;
                Statement::CallThrough { variable, argument: from, to }
            }
            11 if depth < 2 => Statement::Return { variable, limit: 2 },
            12 if depth < 2 => Statement::Exit { variable, limit: 1 },
            13 => Statement::Mix { to, from },
            _ => {
                let operation = [Operation::Add, Operation::Multiply, Operation::Xor][self.below(3) as usize];
                Statement::Compute { to, from, operation, number: self.below(1 << 16) | 1 }
            }
        }
    }
}

/// Why a block does not go on.
enum End {
    Return,
    Exit(u32),
}

fn interpret_block(
    functions: &[Vec<Statement>],
    block: &[Statement],
    values: &mut [u32; 4],
    level: u32,
) -> Result<(), End> {
    for statement in block {
        match statement {
            Statement::Compute { to, from, operation, number } => {
                values[*to] = match operation {
                    Operation::Add => values[*from].wrapping_add(*number),
                    Operation::Multiply => values[*from].wrapping_mul(*number),
                    Operation::Xor => values[*from] ^ number,
                };
            }
            Statement::Mix { to, from } => values[*to] ^= values[*from],
            Statement::If { variable, limit, then, otherwise } => {
                let chosen = if values[*variable] & LOW < *limit { then } else { otherwise };
                interpret_block(functions, chosen, values, level)?;
            }
            Statement::Loop { variable, leave, body } => {
                for _ in 0..values[*variable] & 3 {
                    if values[*leave] & 3 == 3 {
                        break;
                    }
                    interpret_block(functions, body, values, level)?;
                }
            }
            Statement::Switch { variable, cases } => {
                interpret_block(functions, &cases[(values[*variable] & 3) as usize], values, level)?;
            }
            Statement::Call { function, argument, to } => {
                if level > 0 {
                    values[*to] = interpret(functions, *function, values[*argument], level - 1)?;
                }
            }
            Statement::CallThrough { variable, argument, to } => {
                if level > 0 {
                    let function = values[*variable] as usize % FUNCTIONS;
                    values[*to] = interpret(functions, function, values[*argument], level - 1)?;
                }
            }
            Statement::Return { variable, limit } if values[*variable] & LOW < *limit => return Err(End::Return),
            Statement::Exit { variable, limit } if values[*variable] & LOW < *limit => {
                return Err(End::Exit(values[VARIABLES - 1]));
            }
            Statement::Return { .. } | Statement::Exit { .. } => {}
        }
    }
    Ok(())
}

/// The result of a function in one lane.
fn interpret(functions: &[Vec<Statement>], function: usize, argument: u32, level: u32) -> Result<u32, End> {
    let mut values = [argument, argument.wrapping_mul(7), argument >> 3, argument.wrapping_add(level)];
    match interpret_block(functions, &functions[function], &mut values, level) {
        Ok(()) | Err(End::Return) => Ok(values[VARIABLES - 1]),
        Err(end) => Err(end),
    }
}

/// Writes PTX; `%v0` to `%v3` are the variables, `%level` how deep calls may still go.
struct Writer {
    text: String,
    labels: u32,
}

impl Writer {
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn block(&mut self, block: &[Statement]) {
        for statement in block {
            self.statement(statement);
        }
    }

    fn low_below(&mut self, variable: usize, limit: u32) {
        self.line(&format!("and.b32 %t0, %v{variable}, {LOW}; setp.lt.u32 %p0, %t0, {limit};"));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Compute { to, from, operation, number } => {
                let operation = match operation {
                    Operation::Add => "add.u32",
                    Operation::Multiply => "mul.lo.u32",
                    Operation::Xor => "xor.b32",
                };
                self.line(&format!("{operation} %v{to}, %v{from}, {number};"));
            }
            Statement::Mix { to, from } => self.line(&format!("xor.b32 %v{to}, %v{to}, %v{from};")),
            Statement::If { variable, limit, then, otherwise } => {
                let (other, end) = (self.label(), self.label());
                self.low_below(*variable, *limit);
                self.line(&format!("@!%p0 bra {other};"));
                self.block(then);
                self.line(&format!("bra.uni {end};\n{other}:"));
                self.block(otherwise);
                self.line(&format!("{end}:"));
            }
            Statement::Loop { variable, leave, body } => {
                let (head, end) = (self.label(), self.label());
                let count = format!("%count{}", self.labels);
                self.line(&format!("{{ .reg .b32 {count}; and.b32 {count}, %v{variable}, 3;\n{head}:"));
                self.line(&format!("setp.eq.u32 %p0, {count}, 0; @%p0 bra {end};"));
                self.line(&format!("and.b32 %t0, %v{leave}, 3; setp.eq.u32 %p0, %t0, 3; @%p0 bra {end};"));
                self.line(&format!("sub.u32 {count}, {count}, 1;"));
                self.block(body);
                self.line(&format!("bra {head};\n{end}: }}"));
            }
            Statement::Switch { variable, cases } => {
                let labels: Vec<String> = cases.iter().map(|_| self.label()).collect();
                let (table, end) = (self.label(), self.label());
                self.line(&format!("{table}: .branchtargets {};", labels.join(", ")));
                self.line(&format!("and.b32 %t0, %v{variable}, 3; brx.idx %t0, {table};"));
                for (case, label) in cases.iter().zip(labels) {
                    self.line(&format!("{label}:"));
                    self.block(case);
                    self.line(&format!("bra {end};"));
                }
                self.line(&format!("{end}:"));
            }
            Statement::Call { function, argument, to } => {
                self.line("setp.ne.u32 %p0, %level, 0; sub.u32 %t1, %level, 1;");
                // A guard, as compilers rarely write it.
                self.line(&format!(
                    "{{ .param .b32 a; .param .b32 l; .param .b32 b; st.param.b32 [a], %v{argument}; st.param.b32 [l], %t1;\n\
                     @%p0 call (b), f{function}, (a, l);\n@%p0 ld.param.b32 %v{to}, [b]; }}"
                ));
            }
            Statement::CallThrough { variable, argument, to } => {
                let (prototype, end) = (self.label(), self.label());
                self.line(&format!("setp.eq.u32 %p0, %level, 0; @%p0 bra {end}; sub.u32 %t1, %level, 1;"));
                self.line(&format!("rem.u32 %t0, %v{variable}, {FUNCTIONS}; mul.wide.u32 %a0, %t0, 8;"));
                self.line("mov.u64 %a1, table; add.u64 %a0, %a0, %a1; ld.global.u64 %a0, [%a0];");
                self.line(&format!(
                    "{{ .param .b32 a; .param .b32 l; .param .b32 b; st.param.b32 [a], %v{argument}; st.param.b32 [l], %t1;\n\
                     {prototype}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n\
                     call (b), %a0, (a, l), {prototype};\nld.param.b32 %v{to}, [b]; }}\n{end}:"
                ));
            }
            Statement::Return { variable, limit } => {
                self.low_below(*variable, *limit);
                self.line("st.param.b32 [result], %v3; @%p0 ret;");
            }
            Statement::Exit { variable, limit } => {
                self.low_below(*variable, *limit);
                self.line("mov.u32 %t0, %tid.x; mul.wide.u32 %a0, %t0, 4; @%p0 st.global.u32 [%a0], %v3; @%p0 exit;");
            }
        }
    }
}

fn module_text(functions: &[Vec<Statement>]) -> String {
    const HEADER: &str = "(.param .b32 result)";
    const PARAMETERS: &str = "(.param .b32 n, .param .b32 level)";
    let mut writer = Writer { text: ".version 8.8\n.target sm_70\n.address_size 64\n".to_owned(), labels: 0 };
    for number in 0..FUNCTIONS {
        writer.line(&format!(".func {HEADER} f{number}{PARAMETERS};"));
    }
    let names: Vec<String> = (0..FUNCTIONS).map(|number| format!("f{number}")).collect();
    writer.line(&format!(".global .u64 table[{FUNCTIONS}] = {{ {} }};", names.join(", ")));
    for (number, block) in functions.iter().enumerate() {
        writer.line(&format!(
            ".func {HEADER} f{number}{PARAMETERS} {{\n.reg .pred %p<2>; .reg .b32 %v<4>; .reg .b32 %t<3>; .reg .b32 %level;\n\
             .reg .b64 %a<3>;\nld.param.b32 %v0, [n]; ld.param.b32 %level, [level]; mul.lo.u32 %v1, %v0, 7;\n\
             shr.u32 %v2, %v0, 3; add.u32 %v3, %v0, %level;"
        ));
        writer.block(block);
        writer.line("st.param.b32 [result], %v3; ret; }");
    }
    writer.line(
        ".visible .entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %rd<4>;\n\
         mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; mul.lo.u32 %r2, %r1, 77;\n\
         { .param .b32 a; .param .b32 l; .param .b32 b; st.param.b32 [a], %r2; st.param.b32 [l], 3;\n\
         call (b), f0, (a, l); ld.param.b32 %r3, [b]; }\n\
         st.global.u32 [%rd1], %r3; ret; }",
    );
    writer.text
}

#[test]
fn a_warp_computes_what_its_lanes_would_alone() {
    for seed in 0..40u64 {
        let mut random = Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let functions: Vec<Vec<Statement>> = (0..FUNCTIONS)
            .map(|_| {
                let mut calls = 3;
                let mut block = random.block(3, &mut calls);
                block.extend(random.block(2, &mut calls));
                block
            })
            .collect();
        let text = module_text(&functions);
        let (program, global) = load(&[&text]);
        let found = words(&run(&program, &[0; 8], 32, &global));
        for lane in 0..32u32 {
            let expected = match interpret(&functions, 0, lane * 77, 3) {
                Ok(value) | Err(End::Exit(value)) => value,
                Err(End::Return) => unreachable!("a function's return ends there"),
            };
            assert_eq!(found[lane as usize], expected, "seed {seed}, lane {lane}\n{text}");
        }
    }
}
