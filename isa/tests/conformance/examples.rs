//! The harness on instructions whose results are plain to see.

use crate::cases::{check, product, run};

#[test]
fn every_width_goes_in_and_out() {
    let rows = product(&[&[0, 1, 0x7fff, 0xffff], &[0, 3, 0x8000]]);
    check("add.u16 $d, $a, $b", &[16, 16], 16, &rows, |row| (row[0] + row[1]) & 0xffff);
    check("add.u32 $d, $a, $b", &[32, 32], 32, &rows, |row| row[0] + row[1]);
    check("add.u64 $d, $a, $b", &[64, 64], 64, &rows, |row| row[0] + row[1]);
    check("setp.lt.u32 $d, $a, $b", &[32, 32], 1, &rows, |row| u64::from(row[0] < row[1]));
    check("selp.u32 $d, $a, $b, $c", &[32, 32, 1], 32, &product(&[&[5], &[6], &[0, 1]]), |row| 6 - row[2]);
}

#[test]
#[should_panic(expected = "1 of 2 cases are wrong")]
fn a_wrong_result_is_found() {
    check("add.u32 $d, $a, 1", &[32], 32, &[vec![1], vec![2]], |_| 3);
}

#[test]
fn rows_fill_more_than_one_warp() {
    let rows: Vec<Vec<u64>> = (0..70).map(|value| vec![value]).collect();
    assert_eq!(
        run("not.b32 $d, $a", &[32], 32, &rows),
        (0..70).map(|value| u64::from(!(value as u32))).collect::<Vec<_>>()
    );
}
