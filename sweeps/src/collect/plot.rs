//! A chart of one or two swept parameters.

use super::figures::FILES;
use super::table::{Cell, Table};
use crate::SweepError;
use crate::files;
use crate::folder::SweepFolder;
use crate::quantity::common_axis;
use balar_charts::{Line, Lines, Scale, lines};
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// The value in the chart unless another one is asked for.
pub const TIME_METRIC: &str = "kernel_time_ps";
/// The values that every sweep can show, besides its own columns.
pub const PLOTTED: [&str; 4] = [TIME_METRIC, "sim_time_ps", "kernel_cycles", "warp_instructions"];

/// Values that span more than this are shown by their logarithms.
const WIDE: f64 = 40.0;

/// One of the swept parameters, with the places of its values on an axis.
struct Parameter {
    key: String,
    column: usize,
    /// Its values, in the order of the points.
    values: Vec<String>,
    /// Where each of them is.
    places: Vec<f64>,
    scale: Scale,
    unit: String,
}

impl Parameter {
    fn of(key: &str, column: usize, values: Vec<String>) -> Parameter {
        let (places, scale, unit) = match common_axis(values.iter().map(String::as_str)) {
            Some((numbers, unit)) => {
                let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
                let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let scale = if least > 0.0 && most / least > WIDE { Scale::Logarithmic } else { Scale::FromZero };
                if least < 0.0 {
                    // The axis has no place for values below zero.
                    by_name(&values)
                } else {
                    (numbers, scale, unit)
                }
            }
            None => by_name(&values),
        };
        Parameter { key: key.to_owned(), column, values, places, scale, unit }
    }

    fn is_number(&self) -> bool {
        !matches!(self.scale, Scale::Names(_))
    }
}

fn by_name(values: &[String]) -> (Vec<f64>, Scale, String) {
    let places = (0..values.len()).map(|place| place as f64).collect();
    (places, Scale::Names(values.to_vec()), String::new())
}

/// Writes plot.svg. The inner error says in words why there is none; then there is none of an earlier time either.
pub(super) fn write(
    folder: &SweepFolder,
    results: &Table,
    metric: Option<&str>,
) -> Result<Result<(), String>, SweepError> {
    let path = folder.path.join(FILES[3]);
    match draw(folder, results, metric.unwrap_or(TIME_METRIC)) {
        Ok(text) => files::write(&path, |file| file.write_all(text.as_bytes())).map(Ok),
        Err(why) => match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(files::failed("remove", &path)(cause)),
            _ => Ok(Err(why)),
        },
    }
}

fn draw(folder: &SweepFolder, results: &Table, metric: &str) -> Result<String, String> {
    let mut swept = swept(folder);
    // Numbers go across.
    swept.sort_by_key(|parameter| !parameter.is_number());
    let (across, lines_of) = match &swept[..] {
        [one] => (one, None),
        [one, other] => (one, Some(other)),
        [] => return Err("no parameter has more than one value".to_owned()),
        more => return Err(format!("{} parameters are swept, and a chart shows two at most", more.len())),
    };
    let shown = results.column(metric).ok_or_else(|| format!("there is no column `{metric}`"))?;
    let values: Vec<f64> = results.rows.iter().filter_map(|row| row[shown].number()).collect();
    if values.is_empty() {
        return Err(format!("no point has a value of `{metric}`"));
    }
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let (name, factor) = axis_of(metric, most);
    let group = |value: Option<&str>| -> Vec<(f64, f64)> {
        let of_line = |row: &&Vec<Cell>| {
            lines_of.zip(value).is_none_or(|(parameter, value)| row[parameter.column].text() == value)
        };
        let point = |row: &Vec<Cell>| {
            let at = across.values.iter().position(|value| *value == row[across.column].text())?;
            Some((across.places[at], row[shown].number()? * factor))
        };
        let mut points: Vec<(f64, f64)> = results.rows.iter().filter(of_line).filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let names: Vec<String> = match lines_of {
        None => vec![name.clone()],
        Some(parameter) => parameter.values.iter().map(|value| format!("{} = {value}", parameter.key)).collect(),
    };
    let drawn = names
        .iter()
        .enumerate()
        .map(|(at, name)| Line { name, points: group(lines_of.map(|parameter| parameter.values[at].as_str())) });
    let x = if across.unit.is_empty() { across.key.clone() } else { format!("{}, {}", across.key, across.unit) };
    let y_scale = if least > 0.0 && most / least > WIDE { Scale::Logarithmic } else { Scale::FromZero };
    let title = title(folder);
    let chart = Lines {
        title: &title,
        x: &x,
        x_scale: across.scale.clone(),
        y: &name,
        y_scale,
        lines: drawn.collect(),
        references: Vec::new(),
    };
    Ok(lines(&chart))
}

/// The parameters with more than one value. One that another determines, because they change together, is left out.
fn swept(folder: &SweepFolder) -> Vec<Parameter> {
    let definition = &folder.definition;
    let column = |at: usize| definition.points.iter().map(move |point| point[at].clone().unwrap_or_default());
    let mut swept: Vec<(usize, Parameter)> = Vec::new();
    for (at, key) in definition.keys.iter().enumerate() {
        let mut values: Vec<String> = Vec::new();
        for value in column(at) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let follows = |other: usize| {
            let pairs: BTreeSet<(String, String)> = column(other).zip(column(at)).collect();
            let others: BTreeSet<String> = column(other).collect();
            pairs.len() == others.len()
        };
        if values.len() > 1 && !swept.iter().any(|(other, _)| follows(*other)) {
            // The first column of results is the point's number.
            swept.push((at, Parameter::of(key, at + 1, values)));
        }
    }
    swept.into_iter().map(|(_, parameter)| parameter).collect()
}

/// The name of the axis upward, and the factor of its values: times are in a unit that suits them.
fn axis_of(metric: &str, most: f64) -> (String, f64) {
    let Some(name) = metric.strip_suffix("_ps") else { return (metric.to_owned(), 1.0) };
    let units = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")];
    let (size, unit) = units.into_iter().find(|(size, _)| most >= *size).unwrap_or((1.0, "ps"));
    (format!("{}, {unit}", name.replace('_', " ")), 1.0 / size)
}

/// The title: the program and the node.
fn title(folder: &SweepFolder) -> String {
    let definition = &folder.definition;
    let option = |name: &str| {
        let at = definition.options.iter().position(|option| option == name)?;
        definition.options.get(at + 1).cloned()
    };
    let program = definition.command.first().map(|program| {
        std::path::Path::new(program)
            .file_name()
            .map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned())
    });
    match (program.or_else(|| option("--workload")), option("--topology")) {
        (Some(what), Some(node)) => format!("{what} on {node}"),
        (Some(what), None) | (None, Some(what)) => what,
        (None, None) => "sweep".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::collected;
    use super::*;

    fn plot(values: &[&str]) -> String {
        let (folder, _) = collected(values, &[]);
        fs::read_to_string(folder.path().join("plot.svg")).expect("written")
    }

    #[test]
    fn numbers_have_an_axis_of_numbers_and_names_one_of_names() {
        let numbers = plot(&["500 MHz", "1 GHz", "1.8 GHz"]);
        for wanted in ["a, MHz", "kernel time, ps", "\n500\n"] {
            assert!(numbers.contains(wanted), "{wanted} is missing in {numbers}");
        }
        let names = plot(&["lrr", "gto", "oldest"]);
        for wanted in ["lrr", "gto", "oldest"] {
            assert!(names.contains(wanted), "{wanted} is missing in {names}");
        }
    }

    #[test]
    fn what_is_no_chart_is_told() {
        let (folder, table) = collected(&["1", "2", "3"], &[]);
        let sweep = crate::folder::SweepFolder::read(folder.path(), "1.0").expect("read");
        assert_eq!(draw(&sweep, &table, "ipc"), Err("there is no column `ipc`".to_owned()));
        let (_folder, table) = collected(&["1"], &[]);
        let one = tempfile::tempdir().expect("a folder");
        let sweep = crate::folder::SweepFolder::open(one.path(), crate::definition::tests::definition(&["1"]), false);
        let said = draw(&sweep.expect("opened"), &table, TIME_METRIC);
        assert_eq!(said, Err("no parameter has more than one value".to_owned()));
    }

    #[test]
    fn what_changes_with_another_is_no_parameter_of_its_own() {
        let text =
            "[{\"a\": 1, \"b\": 10, \"c\": 5}, {\"a\": 2, \"b\": 20, \"c\": 5}, {\"a\": 2, \"b\": 20, \"c\": 6}]";
        let points = crate::points::Points::of(&crate::points::read_file(text).expect("points"), &[]).expect("points");
        let definition = crate::definition::Definition::new("1.0", Vec::new(), Vec::new(), Vec::new(), points);
        let parent = tempfile::tempdir().expect("a folder");
        let folder = SweepFolder::open(parent.path(), definition, false).expect("opened");
        let keys: Vec<String> = swept(&folder).into_iter().map(|parameter| parameter.key).collect();
        assert_eq!(keys, ["a", "c"]);
    }

    #[test]
    fn times_have_a_unit_that_suits_them() {
        assert_eq!(axis_of("kernel_time_ps", 3e6), ("kernel time, us".to_owned(), 1e-6));
        assert_eq!(axis_of("kernel_cycles", 3e6), ("kernel_cycles".to_owned(), 1.0));
    }
}
