//! What a study found as a page: one file that needs no other, tables beside their charts, light or dark as the reader's system is.

use balar_experiments::validation::report::{Cell, Chart, Report, Table};

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1c2128;--page:#fff;--line:#d0d7de;--quiet:#57606a;--band:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--page:#0d1117;--line:#30363d;--quiet:#9198a1;--band:#161b22}}
body{margin:0 auto;max-width:1500px;padding:1.5rem;font:15px/1.45 system-ui,sans-serif;color:var(--text);background:var(--page)}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
nav a{margin-right:1rem}a{color:inherit}
.pair{display:flex;flex-wrap:wrap;gap:1.2rem;align-items:flex-start}
.pair>.table{flex:1 1 600px;min-width:0}.pair>.charts{flex:1 1 420px;max-width:760px}
.table{overflow:auto;max-height:640px;border:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap}
th{position:sticky;top:0;background:var(--band);border-bottom:1px solid var(--line);font-weight:600}
tr:nth-child(even) td{background:var(--band)}.left{text-align:left}
.notes{color:var(--quiet);margin:.6rem 0 0;padding-left:1.1rem;max-width:75rem}
.charts svg{width:100%;height:auto;background:#fff;border:1px solid var(--line);margin-bottom:.6rem}
@media print{.table{max-height:none}}
";

/// The page.
pub fn page(report: &Report) -> String {
    let title = match &report.opening {
        Some(opening) => escaped(&opening.title),
        None => format!("balar-actors validate {}", report.study),
    };
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    text.push_str(&format!("<p>{}</p>\n", lead(report)));
    for failure in &report.failures {
        text.push_str(&format!("<p><strong>{}</strong></p>\n", escaped(failure)));
    }
    let links = report.tables.iter().map(|table| format!("<a href=\"#{0}\">{0}</a>", table.name));
    text.push_str(&format!("<nav>{}</nav>\n", links.collect::<Vec<_>>().join("\n")));
    // The chart that is named as the report shows what the report is about.
    let mut placed: Vec<bool> = report.charts.iter().map(|chart| chart.name == report.study).collect();
    let first: Vec<&Chart> = report.charts.iter().filter(|chart| chart.name == report.study).collect();
    if !first.is_empty() {
        text.push_str(&format!("<div class=\"pair\">{}</div>\n", charts(&first)));
    }
    for table in &report.tables {
        let mut own = Vec::new();
        for (at, chart) in report.charts.iter().enumerate() {
            if !placed[at] && belongs(chart, table) {
                placed[at] = true;
                own.push(chart);
            }
        }
        text.push_str(&section(table, &own));
    }
    let rest: Vec<&Chart> =
        report.charts.iter().zip(&placed).filter(|(_, placed)| !**placed).map(|(chart, _)| chart).collect();
    if !rest.is_empty() {
        text.push_str(&format!("<h2>More charts</h2>\n<div class=\"pair\">{}</div>\n", charts(&rest)));
    }
    text.push_str("</body>\n</html>\n");
    text
}

/// What the page shows, and whether it is complete.
fn lead(report: &Report) -> String {
    let files = "the files beside this page have them in full";
    let shown = match &report.opening {
        Some(opening) => format!("{} Tables and charts follow; {files}.", opening.lead),
        None => format!("Simulated figures beside measured ones; {files}."),
    };
    match (report.completed, report.runs) {
        (true, 0) => shown,
        (true, 1) => format!("The run came to its end. {shown}"),
        (true, runs) => format!("All {runs} runs came to their end. {shown}"),
        (false, runs) => {
            format!("{runs} of {} runs came to their end: the tables are not complete. {shown}", report.planned)
        }
    }
}

/// Whether a chart shows what a table has: by their names, without the plural.
fn belongs(chart: &Chart, table: &Table) -> bool {
    chart.name.starts_with(table.name.trim_end_matches('s'))
}

fn section(table: &Table, own: &[&Chart]) -> String {
    let is_text: Vec<bool> = (0..table.columns.len())
        .map(|column| matches!(table.rows.first().and_then(|row| row.get(column)), Some(Cell::Text(_))))
        .collect();
    let class = |column: usize| if is_text[column] { " class=\"left\"" } else { "" };
    let header = table.columns.iter().enumerate();
    let header: String =
        header.map(|(at, column)| format!("<th{}>{}</th>", class(at), escaped(column.heading))).collect();
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().enumerate();
        let cells: String =
            cells.map(|(at, cell)| format!("<td{}>{}</td>", class(at), escaped(&cell.shown()))).collect();
        format!("<tr>{cells}</tr>\n")
    });
    let notes: String = table.notes.iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"notes\">\n{notes}</ul>\n") };
    let charts = if own.is_empty() { String::new() } else { charts(own) };
    format!(
        "<h2 id=\"{}\">{}</h2>\n<div class=\"pair\">\n<div class=\"table\"><table>\n<thead><tr>{header}</tr></thead>\n\
         <tbody>\n{}</tbody>\n</table></div>\n{charts}</div>\n{notes}",
        table.name,
        escaped(table.title),
        rows.collect::<String>()
    )
}

fn charts(charts: &[&Chart]) -> String {
    format!("<div class=\"charts\">\n{}</div>\n", charts.iter().map(|chart| chart.svg.as_str()).collect::<String>())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_experiments::validation::report::{Column, Opening};

    fn table(name: &'static str) -> Table {
        Table {
            name,
            title: "A & B",
            columns: vec![Column::new("program", "program"), Column::new("us", "us")],
            rows: vec![vec![Cell::text("<one>"), Cell::Number(1.25, 1)], vec![Cell::text("two"), Cell::Absent]],
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn every_table_and_chart_is_there_once_and_text_is_text() {
        let chart = |name, svg: &str| Chart { name, svg: svg.to_owned() };
        let report = Report {
            study: "study",
            completed: true,
            runs: 2,
            planned: 2,
            tables: vec![table("times"), table("mix")],
            charts: vec![
                chart("mix_first", "<svg>1</svg>"),
                chart("time", "<svg>2</svg>"),
                chart("else", "<svg>3</svg>"),
            ],
            ..Report::default()
        };
        let text = page(&report);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing"));
        assert!(at("id=\"times\"") < at("<svg>2</svg>") && at("<svg>2</svg>") < at("id=\"mix\""));
        assert!(at("id=\"mix\"") < at("<svg>1</svg>") && at("<svg>1</svg>") < at("More charts"));
        assert!(at("More charts") < at("<svg>3</svg>"));
        assert!(text.contains("&lt;one&gt;") && text.contains("A &amp; B") && !text.contains("<one>"));
        assert!(text.contains("All 2 runs"));
        assert!(!text.contains("http"), "it needs nothing from elsewhere");
    }

    #[test]
    fn a_report_that_is_no_study_has_its_own_beginning() {
        let chart = |name, svg: &str| Chart { name, svg: svg.to_owned() };
        let report = Report {
            study: "roofline",
            completed: true,
            tables: vec![table("ceilings")],
            charts: vec![chart("bandwidth", "<svg>1</svg>"), chart("roofline", "<svg>2</svg>")],
            opening: Some(Opening { title: "Roofline of <node>".to_owned(), lead: "What it can do." }),
            ..Report::default()
        };
        let text = page(&report);
        assert!(text.contains("<title>Roofline of &lt;node&gt;</title>") && text.contains("<h1>Roofline of"), "{text}");
        assert!(text.contains("<p>What it can do. Tables and charts follow;"), "{text}");
        assert!(!text.contains("came to") && !text.contains("validate"), "{text}");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing"));
        assert!(at("<svg>2</svg>") < at("id=\"ceilings\"") && at("id=\"ceilings\"") < at("<svg>1</svg>"));
        assert_eq!(text.matches("<svg>2</svg>").count(), 1);
    }

    #[test]
    fn what_is_missing_is_said() {
        let failures = vec!["--topology x: it <failed>".to_owned()];
        let text = page(&Report { runs: 1, planned: 2, failures, ..Report::default() });
        assert!(text.contains("1 of 2 runs") && text.contains("it &lt;failed&gt;"));
    }
}
