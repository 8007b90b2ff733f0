use super::*;
use balar_record::run_folder::instructions::parse;
use std::collections::BTreeSet;
use std::path::Path;

/// Two kernels: `k` from machine code with lines, on two GPUs, with `f` inlined in it; `p` from PTX that names no source.
const TEXT: &str = "\
gpu,kernel,isa,function,code,address,file,line,source_file,source_line,source_function,inlined_at,text,inst_executed,thread_inst_executed,\
shared_wavefronts_load,shared_wavefronts_store,shared_memory_bank_conflicts,l1_accesses_load,l1_accesses_store,l1_sectors_load,\
l1_sectors_store,stall_none_selected,stall_wait,stall_long_scoreboard
gpu[0],k,sass,k,ab,0,,,src/k.cu,3,k,,MOV,4,128,0,0,0,0,0,0,0,4,2,0
gpu[0],k,sass,k,ab,16,,,src/f.h,7,f,k@src/k.cu:4,LDG,4,100,0,0,0,4,0,64,0,4,0,16
gpu[0],k,sass,k,ab,32,,,src/k.cu,4,k,,STS,4,128,0,12,8,0,0,0,0,4,1,1
gpu[0],k,sass,k,ab,48,,,,,k,,EXIT,4,128,0,0,0,0,0,0,0,4,0,0
gpu[1],k,sass,k,ab,16,,,src/f.h,7,f,k@src/k.cu:4,LDG,1,32,0,0,0,1,0,16,0,1,0,3
gpu[0],p,ptx,p,ef,0,k.ptx,7,,,p,,\"mov.u32 r, 1;\",2,2,0,0,0,0,0,0,0,2,6,0
gpu[0],p,ptx,p,ef,1,k.ptx,7,,,p,,exit;,2,2,0,0,0,0,0,0,0,2,0,0
";

fn profile() -> InstructionProfile {
    parse(TEXT, Path::new("out/instructions.csv")).expect("a file")
}

/// Rows of the first kernel: line or function, executions and cycles.
fn told(by: By) -> Vec<(String, u64, u64)> {
    let profile = profile();
    let kernels = rows::kernels(&profile, by, |name| name == "k");
    let rows = kernels[0].rows.iter().map(|row| {
        let place = row.line.as_ref().map_or("-".to_owned(), |line| format!("{}:{}", line.file, line.line));
        let place = if by == By::Function { row.function.clone() } else { place };
        (place, row.counts.executed(), row.counts.cycles())
    });
    rows.collect()
}

#[test]
fn rows_are_sums() {
    let row = |place: &str, executed, cycles| (place.to_owned(), executed, cycles);
    let by_line = [row("src/k.cu:3", 4, 6), row("src/f.h:7", 5, 24), row("src/k.cu:4", 4, 6), row("-", 4, 4)];
    assert_eq!(told(By::Line), by_line);
    // Here each line has one instruction.
    assert_eq!(told(By::Instruction), by_line);
    assert_eq!(told(By::Function), [row("k", 12, 16), row("f", 5, 24)]);
}

#[test]
fn instructions_of_an_opcode_are_one_row() {
    let text = TEXT.replace(",MOV,", ",@!P0 LDG.E R1; ,").replace(",LDG,", ",LDG.E R2;,");
    let profile = parse(&text, Path::new("out/instructions.csv")).expect("a file");
    let kernels = rows::kernels(&profile, By::Opcode, |_| true);
    let told = |kernel: usize| -> Vec<(&str, usize, u64)> {
        kernels[kernel].rows.iter().map(|row| (&*row.text, row.instructions, row.counts.executed())).collect()
    };
    // 4 of one, 4 and 1 of the other on two GPUs.
    assert_eq!(told(0), [("LDG.E", 3, 9), ("STS", 1, 4), ("EXIT", 1, 4)]);
    assert_eq!(told(1), [("mov.u32", 1, 2), ("exit", 1, 2)]);
}

#[test]
fn whatever_instructions_are_summed_by_all_rows_are_the_kernel() {
    let profile = profile();
    for by in [By::Instruction, By::Line, By::Function, By::Opcode] {
        for kernel in rows::kernels(&profile, by, |_| true) {
            for (column, (name, total)) in kernel.total.all().enumerate() {
                let of_rows: u64 = kernel.rows.iter().filter_map(|row| row.counts.get(name)).sum();
                let own = profile.rows.iter().filter(|row| row.kernel == kernel.name).map(|row| row.counts[column]);
                assert_eq!((of_rows, total), (total, own.sum()), "{name} {by:?}");
            }
        }
    }
}

#[test]
fn figures_follow_from_counters() {
    let profile = profile();
    let kernels = rows::kernels(&profile, By::Instruction, |_| true);
    let [_, load, store, _] = &kernels[0].rows[..] else { panic!("four instructions") };
    // 80 sectors of 5 loads; 132 lanes of 5 executions; 8 of 12 wavefronts beyond the least.
    assert_eq!((load.counts.sectors_per_access(), load.counts.lanes()), (Some(16.0), Some(132.0 / 5.0)));
    assert_eq!((load.counts.bank_conflicts(), store.counts.bank_conflicts()), (None, Some(8)));
    assert_eq!(load.counts.stalls(), [("long_scoreboard", 19)]);
    assert_eq!((kernels[0].gpus, kernels[0].share(load)), (2, 24.0 / 40.0));
    assert!(kernels[0].has_source && !kernels[1].has_source);
    // Where PTX names no source, its own line stands in.
    let of_ptx = &rows::kernels(&profile, By::Line, |name| name == "p")[0];
    assert_eq!((of_ptx.rows.len(), of_ptx.rows[0].instructions), (1, 2));
    assert_eq!(of_ptx.rows[0].line.as_ref().map(|line| (&*line.file, line.line)), Some(("k.ptx", 7)));
}

/// A copy into a transposed matrix: the line's load reads 32 neighbouring words, 4 sectors, and its store writes 32 lines, 32 sectors.
#[test]
fn loads_and_stores_of_a_line_are_told_apart() {
    let header = TEXT.lines().next().expect("a header");
    let text = format!(
        "{header}\n\
         gpu,t,sass,t,ab,0,,,t.cu,5,t,,LDG,8,256,0,0,0,8,0,32,0,8,0,0\n\
         gpu,t,sass,t,ab,16,,,t.cu,5,t,,STG,8,256,0,0,0,0,8,0,256,8,0,0\n\
         gpu,t,sass,t,ab,32,,,t.cu,6,t,,LDG,8,256,0,0,0,4,0,80,0,8,0,0\n"
    );
    let profile = parse(&text, Path::new("out/instructions.csv")).expect("a file");
    let kernel = rows::kernels(&profile, By::Line, |_| true).swap_remove(0);
    let [copy, load] = &kernel.rows[..] else { panic!("two lines") };
    // 32 sectors of 8 loads, 256 of 8 stores; 80 of 4 loads.
    assert_eq!((copy.counts.sectors_per_load(), copy.counts.sectors_per_store()), (Some(4.0), Some(32.0)));
    assert_eq!((load.counts.sectors_per_load(), load.counts.sectors_per_store()), (Some(20.0), None));
    let shown = [copy, load].map(|row| row.counts.sectors());
    assert_eq!(shown, [Some("4/32".to_owned()), Some("20.0".to_owned())]);
    // By its mean, 18, the copy would come second.
    let sorted = kernel.sorted(rows::Sort::Sectors);
    assert_eq!(sorted.rows[0].line.as_ref().map(|line| line.line), Some(5));
}

#[test]
fn rows_are_sorted() {
    let profile = profile();
    let texts = |sort: &str| -> Vec<String> {
        let kernel = rows::kernels(&profile, By::Instruction, |name| name == "k").swap_remove(0);
        let sort = rows::Sort::find(sort, &profile.columns).expect(sort);
        kernel.sorted(sort).rows.into_iter().map(|row| row.text).collect()
    };
    assert_eq!(texts("code"), ["MOV", "LDG", "STS", "EXIT"]);
    // MOV and STS have 6 cycles both: they stay in the order of the code.
    assert_eq!(texts("cycles"), ["LDG", "MOV", "STS", "EXIT"]);
    assert_eq!(texts("conflicts")[0], "STS");
    assert_eq!(texts("sectors")[0], "LDG");
    assert_eq!(texts("lanes")[0], "LDG");
    assert_eq!(texts("executed")[0], "LDG");
    assert_eq!(texts("stall_wait")[..2], ["MOV", "STS"]);
    let missing = rows::Sort::find("cycle", &profile.columns);
    assert_eq!(missing, Err("did you mean `cycles`?".to_owned()));
    assert!(rows::Sort::find("xyzzy", &profile.columns).is_err_and(|help| help.contains("expected cycles, executed")));
}

#[test]
fn stacks_are_folded() {
    let folded = folded::text(&profile(), |_| true);
    let expected = "\
k;k.cu:3;0x0000 MOV 6
k;k.cu:4;f;f.h:7;0x0010 LDG 24
k;k.cu:4;0x0020 STS 6
k;0x0030 EXIT 4
p;k.ptx:7;mov.u32 r, 1 8
p;k.ptx:7;exit 2
";
    assert_eq!(folded, expected);
    let frames: BTreeSet<usize> =
        folded.lines().map(|line| line.rsplit_once(' ').expect("a weight").0.split(';').count()).collect();
    assert!(frames.into_iter().all(|count| count >= 2));
}

#[test]
fn inner_functions_have_names() {
    assert_eq!(rows::function_name("$first$_Z5apartf"), "apart");
    assert_eq!(
        rows::function_name("$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath"),
        "__cuda_sm3x_div_rn_noftz_f32_slowpath"
    );
    assert_eq!(rows::function_name("_Z5scaleIfEvPT_i"), "scale<float>");
}
