//! The picture of a topology: its contents, and that nothing in it hides anything else.

use balar_actors::catalogue::{Capability, UnitDefinition};
use balar_actors::kinds::UNITS;
use balar_actors::topology::{self, LoadOptions, Override, PartLibrary, Topology, TopologySource};
use balar_experiments::BuiltInWorkloads;

/// A place in the picture: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

#[derive(Debug)]
struct Rectangle {
    class: String,
    area: Area,
    tooltip: String,
}

#[derive(Debug)]
struct Text {
    text: String,
    area: Area,
}

/// What an SVG of ours holds, one element a line.
#[derive(Debug, Default)]
struct Picture {
    boxes: Vec<Rectangle>,
    lines: Vec<Vec<(f64, f64)>>,
    texts: Vec<Text>,
}

fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
    let after = line.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name} in {line}")).1;
    after.split('"').next().expect("a closing quote")
}

fn number(line: &str, name: &str) -> f64 {
    attribute(line, name).parse().expect("a number")
}

fn content(line: &str) -> String {
    let inside = line.rsplit_once("</t").expect("an element with text").0;
    inside.rsplit('>').next().unwrap_or_default().to_owned()
}

/// Where a text stands, by the least that its characters take in common fonts.
fn text_area(line: &str, class: &str, text: &str) -> Area {
    let size = match class {
        "title" => 22.0,
        "gpu-name" => 18.0,
        "subtitle" | "name" => 13.0,
        "caption" | "inverse" => 12.0,
        "latency" => 10.0,
        _ => 11.0,
    };
    let width = text.chars().count() as f64 * size * 0.5;
    let (x, y) = (number(line, "x"), number(line, "y"));
    let left = match attribute(line, "text-anchor") {
        "start" => x,
        "middle" => x - width / 2.0,
        _ => x - width,
    };
    (left, y - size * 0.7, left + width, y)
}

fn read(svg: &str) -> Picture {
    let mut picture = Picture::default();
    for line in svg.lines() {
        if line.starts_with("<rect") {
            let (left, top) = (number(line, "x"), number(line, "y"));
            let area = (left, top, left + number(line, "width"), top + number(line, "height"));
            let class = attribute(line, "class").to_owned();
            let tooltip = if class == "background" { String::new() } else { content(line.trim_end_matches("</rect>")) };
            picture.boxes.push(Rectangle { class, area, tooltip });
        } else if line.starts_with("<polyline") {
            let point = |point: &str| {
                let (x, y) = point.split_once(',').expect("x,y");
                (x.parse().expect("x"), y.parse().expect("y"))
            };
            picture.lines.push(attribute(line, "points").split(' ').map(point).collect());
        } else if line.starts_with("<text") {
            let text = content(line);
            let area = text_area(line, attribute(line, "class"), &text);
            picture.texts.push(Text { text, area });
        }
    }
    picture
}

impl Picture {
    fn count(&self, class: &str) -> usize {
        self.boxes.iter().filter(|drawn| drawn.class == class).count()
    }

    fn says(&self, text: &str) -> bool {
        self.texts.iter().any(|drawn| drawn.text == text)
    }

    #[track_caller]
    fn must_say(&self, texts: &[&str]) {
        for text in texts {
            let all: Vec<&str> = self.texts.iter().map(|drawn| drawn.text.as_str()).collect();
            assert!(self.says(text), "{text}: {all:#?}");
        }
    }
}

fn overlap(a: &Area, b: &Area) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

fn is_inside(a: &Area, b: &Area) -> bool {
    a.0 >= b.0 && a.1 >= b.1 && a.2 <= b.2 && a.3 <= b.3
}

/// Two boxes lie apart or one in the other, no wire crosses a unit or a text, none passes a GPU, no text covers another.
fn check_that_nothing_is_hidden(picture: &Picture, name: &str) {
    for (index, a) in picture.boxes.iter().enumerate() {
        for b in &picture.boxes[..index] {
            let apart = !overlap(&a.area, &b.area);
            assert!(apart || is_inside(&a.area, &b.area), "{name}: {a:?} over {b:?}");
        }
    }
    let frames = ["background", "package", "die"];
    for points in &picture.lines {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            assert!(x1 == x2 || y1 == y2, "{name}: {points:?} is not upright");
            let segment = (x1.min(x2) - 0.1, y1.min(y2) - 0.1, x1.max(x2) + 0.1, y1.max(y2) + 0.1);
            for text in &picture.texts {
                assert!(!overlap(&segment, &text.area), "{name}: {points:?} crosses {text:?}");
            }
            for drawn in &picture.boxes {
                let (left, top, right, bottom) = drawn.area;
                // A wire may end at the rim of a box.
                let inner = (left + 0.2, top + 0.2, right - 0.2, bottom - 0.2);
                let is_unit = !frames.contains(&drawn.class.as_str());
                assert!(!(is_unit && overlap(&segment, &inner)), "{name}: {points:?} crosses {drawn:?}");
            }
        }
        let xs = || points.iter().map(|point| point.0);
        let ys = || points.iter().map(|point| point.1);
        let whole = (
            xs().fold(f64::MAX, f64::min),
            ys().fold(f64::MAX, f64::min),
            xs().fold(f64::MIN, f64::max),
            ys().fold(f64::MIN, f64::max),
        );
        for package in picture.boxes.iter().filter(|drawn| drawn.class == "package") {
            let is_within = is_inside(&whole, &package.area);
            let crosses = points.windows(2).any(|pair| {
                let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
                let segment = (x1.min(x2), y1.min(y2) - 0.1, x1.max(x2), y1.max(y2) + 0.1);
                overlap(&segment, &package.area)
            });
            assert!(is_within || !crosses, "{name}: {points:?} passes {}", package.tooltip);
        }
    }
    let all = picture.boxes[0].area;
    for (index, a) in picture.texts.iter().enumerate() {
        assert!(is_inside(&a.area, &all), "{name}: {a:?} is outside of the picture");
        for b in &picture.texts[..index] {
            assert!(!overlap(&a.area, &b.area), "{name}: {a:?} over {b:?}");
        }
        for drawn in picture.boxes.iter().filter(|drawn| overlap(&a.area, &drawn.area)) {
            let is_frame = frames.contains(&drawn.class.as_str());
            assert!(is_frame || is_inside(&a.area, &drawn.area), "{name}: {a:?} leaves {drawn:?}");
        }
    }
}

fn load_with(
    source: &TopologySource,
    library: &PartLibrary,
    kinds: &[&'static UnitDefinition],
    set: &[&str],
) -> Topology {
    let overrides: Vec<Override> = set.iter().map(|text| Override((*text).to_owned())).collect();
    let options = LoadOptions { kinds, library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    match topology::load(source, &options) {
        Ok(topology) => topology,
        Err(errors) => panic!("{}", errors.render()),
    }
}

fn load(name: &str, set: &[&str]) -> Topology {
    load_with(&TopologySource::from(name), &PartLibrary::built_in(), UNITS, set)
}

fn load_text(text: &str) -> Topology {
    let source = TopologySource::Text { name: "text.ron".to_owned(), text: text.to_owned() };
    load_with(&source, &PartLibrary::built_in(), UNITS, &[])
}

fn picture(topology: &Topology) -> Picture {
    read(&topology::svg(topology))
}

#[test]
fn every_unit_of_a_shipped_topology_is_in_its_picture() {
    for name in PartLibrary::built_in().topologies() {
        let topology = load(name, &[]);
        let picture = picture(&topology);
        check_that_nothing_is_hidden(&picture, name);
        let having = |wanted: fn(&Capability) -> bool| {
            topology.units.iter().filter(|unit| unit.provides.iter().any(wanted)).count()
        };
        assert_eq!(picture.count("sm"), having(|provided| matches!(provided, Capability::Sm(_))), "{name}");
        assert_eq!(picture.count("l2"), having(|provided| matches!(provided, Capability::L2Cache { .. })), "{name}");
        let memories = having(|provided| matches!(provided, Capability::DeviceMemory { .. }));
        assert_eq!(picture.count("memory"), memories, "{name}");
        assert_eq!(picture.count("package"), topology.gpus().len(), "{name}");
        // Every unit is a box of its own, or a link with its rate.
        for unit in &topology.units {
            let is_link = unit.kind.name == "Link";
            let gpu = topology.gpus().iter().position(|gpu| gpu.part == unit.part);
            let local = if gpu.is_some() { unit.local_name() } else { &unit.path };
            let is_drawn = picture.boxes.iter().any(|drawn| drawn.tooltip == unit.path || drawn.tooltip == local);
            assert!(if is_link { picture.says(&unit.path) } else { is_drawn }, "{name}: {}", unit.path);
        }
    }
}

#[test]
fn sizes_clocks_and_rates_are_those_of_the_topology() {
    // 4 stacks, 8 channels of 128 bits, two transfers a cycle: 877 MHz give 898.0 GB/s, 715 MHz give 732.2 GB/s.
    picture(&load("v100_node", &[])).must_say(&[
        "84 SMs \u{b7} 1312 MHz \u{b7} L1 128 KiB \u{b7} 64 warps",
        "GPU 0 \u{b7} compute capability 7.0 \u{b7} SMs at 1312 MHz",
        "L2 6 MiB \u{b7} 32 slices of 192 KiB \u{b7} 1312 MHz",
        "device memory 16 GiB \u{b7} 898 GB/s \u{b7} 4 \u{d7} hbm \u{b7} 877 MHz",
        "15.75 GB/s \u{b7} 23.84 ns",
        "crossbar \u{b7} 1200 MHz \u{b7} 64 B in, 32 B out a cycle and port",
        "85.3 GB/s",
        "HostCpu",
        "84 \u{d7} 20 ns",
        "32 \u{d7} 20 ns",
    ]);
    picture(&load("p100_node", &[])).must_say(&[
        "56 SMs \u{b7} 1328 MHz \u{b7} L1 88 KiB \u{b7} 64 warps",
        "GPU 0 \u{b7} compute capability 6.0 \u{b7} SMs at 1328 MHz",
        "L2 4 MiB \u{b7} 8 slices of 512 KiB \u{b7} 1328 MHz",
        "device memory 16 GiB \u{b7} 732.2 GB/s \u{b7} 4 \u{d7} hbm \u{b7} 715 MHz",
    ]);
    // 16 channels of 16 bits at 10 Gbit/s.
    picture(&load("t4_node", &[])).must_say(&[
        "40 SMs \u{b7} 1590 MHz \u{b7} L1 96 KiB \u{b7} 32 warps",
        "GPU 0 \u{b7} compute capability 7.5 \u{b7} SMs at 1590 MHz",
        "L2 4 MiB \u{b7} 32 slices of 128 KiB \u{b7} 1590 MHz",
        "device memory 16 GiB \u{b7} 320 GB/s \u{b7} 8 \u{d7} gddr6 \u{b7} 5000 MHz",
    ]);
    // 11 chips of 32 pins at 11 Gbit/s: GDDR5X has no stacks.
    picture(&load("gtx1080ti_node", &[]))
        .must_say(&["device memory 11 GiB \u{b7} 484 GB/s \u{b7} 11 \u{d7} gddr5x \u{b7} 5500 MHz"]);
    let set = ["gpu.sm[*].clock=1500MHz", "data_link.bandwidth=\"32 GB/s\"", "gpu.hbm[0].capacity=\"8 GiB\""];
    picture(&load("v100_node", &set)).must_say(&[
        "84 SMs \u{b7} 1500MHz \u{b7} L1 128 KiB \u{b7} 64 warps",
        "GPU 0 \u{b7} compute capability 7.0 \u{b7} SMs at 1500 MHz",
        "32 GB/s \u{b7} 23.84 ns",
        "8 GiB",
        "device memory 20 GiB \u{b7} 898 GB/s \u{b7} 4 \u{d7} hbm \u{b7} 877 MHz",
    ]);
}

#[test]
fn gpus_are_told_apart() {
    let picture = picture(&load("four_v100_node", &[]));
    for gpu in 0..4 {
        picture.must_say(&[&format!("gpu[{gpu}]"), &format!("command_link[{gpu}]"), &format!("data_link[{gpu}]")]);
    }
}

/// Two GPUs, or four, whose crossbars have links to each other.
fn peers(gpus: usize, pairs: &[(usize, usize)]) -> String {
    let mut links = String::new();
    for (link, (from, to)) in pairs.iter().enumerate() {
        links += &format!(
            "(\"gpu[{from}].crossbar.slice[{}]\", \"peer[{link}].up\"), (\"peer[{link}].down\", \"gpu[{to}].crossbar.copy[{}]\"),\n",
            32 + pairs[..link].iter().filter(|pair| pair.0 == *from).count(),
            2 + pairs[..link].iter().filter(|pair| pair.1 == *to).count(),
        );
    }
    let node = if gpus == 4 {
        include_str!("../../../topologies/four_v100_node.ron")
    } else {
        include_str!("../../../topologies/two_v100_node.ron")
    };
    let row = format!(
        "\"peer[0..{}]\": Link(latency: \"700 ns\", bandwidth: \"25 GB/s\"),\n        \"gpu[0..{gpus}]\"",
        pairs.len()
    );
    let text = node.replace(&format!("\"gpu[0..{gpus}]\""), &row);
    text.replace("(\"cpu.memory\"", &format!("{links}(\"cpu.memory\""))
}

#[test]
fn links_between_gpus_pass_no_gpu() {
    for (gpus, pairs) in [(2, &[(0, 1)][..]), (2, &[(0, 1), (1, 0)]), (4, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 0)])] {
        let picture = picture(&load_text(&peers(gpus, pairs)));
        check_that_nothing_is_hidden(&picture, &format!("{pairs:?}"));
        for link in 0..pairs.len() {
            let name = format!("peer[{link}]");
            let labels = picture.texts.iter().filter(|drawn| drawn.text.starts_with(&name)).count();
            assert_eq!(labels, 1, "{name} of {pairs:?}");
        }
        assert_eq!(
            picture.texts.iter().filter(|drawn| drawn.text.contains("25 GB/s \u{b7} 700 ns")).count(),
            pairs.len()
        );
    }
}

/// A kind of unit that does not come with the simulator, wired as `PassThrough`.
fn own_kind() -> &'static UnitDefinition {
    let like = UNITS.iter().find(|kind| kind.name == "PassThrough").expect("a kind to be like");
    Box::leak(Box::new(UnitDefinition { name: "Filter", ..**like }))
}

#[test]
fn a_unit_of_ones_own_stands_where_it_is_wired() {
    let text = include_str!("../../../examples/topologies/v100_pass_through.ron").replace("PassThrough(", "Filter(");
    let kinds: Vec<&'static UnitDefinition> = UNITS.iter().copied().chain([own_kind()]).collect();
    let source = TopologySource::Text { name: "own.ron".to_owned(), text };
    let picture = picture(&load_with(&source, &PartLibrary::built_in(), &kinds, &[]));
    check_that_nothing_is_hidden(&picture, "own");
    picture.must_say(&["84 \u{d7} between \u{b7} Filter \u{b7} 1312 MHz"]);
    let own: Vec<&Rectangle> = picture.boxes.iter().filter(|drawn| drawn.class == "own").collect();
    assert_eq!((own.len(), picture.count("tick")), (1, 84));
    let bottom_of = |class: &str| {
        let all = picture.boxes.iter().filter(|drawn| drawn.class == class);
        all.map(|drawn| drawn.area.3).fold(0.0, f64::max)
    };
    assert!(bottom_of("cluster") < own[0].area.1 && own[0].area.3 < bottom_of("bar"), "between SMs and crossbar");
    // The SMs' wires end at it.
    let ends_there = |points: &&Vec<(f64, f64)>| points.last().is_some_and(|point| point.1 == own[0].area.1);
    assert!(picture.lines.iter().filter(ends_there).count() > 1);
}

#[test]
fn a_unit_of_the_host_stands_with_the_host() {
    for (file, unit) in [("p100", "Filter"), ("two_v100", "Filter"), ("four_v100", "Filter"), ("p100", "PassThrough")] {
        let library = PartLibrary::built_in();
        let name = format!("{file}_node.ron");
        let text = library.files.iter().find(|(file, _)| *file == name).expect("built in").1;
        let filter = format!("\"filter\": {unit}(clock: \"1 GHz\", latency: 2),\n        \"host_memory\"");
        let text =
            text.replace("\"host_memory\"", &format!("\"far\": {unit}(clock: \"1 GHz\", latency: 2),\n{filter}"));
        let links = "(\"cpu.memory\", \"filter.upstream\", latency: \"5 ns\"), (\"filter.downstream\", \"far.upstream\", latency: \"7 ns\"), \
                     (\"far.downstream\", \"host_memory.client[0]\"";
        let text = text.replace("(\"cpu.memory\", \"host_memory.client[0]\"", links);
        let kinds: Vec<&'static UnitDefinition> = UNITS.iter().copied().chain([own_kind()]).collect();
        let source = TopologySource::Text { name: "own.ron".to_owned(), text };
        let picture = picture(&load_with(&source, &library, &kinds, &[]));
        check_that_nothing_is_hidden(&picture, &name);
        picture.must_say(&["filter", "far", unit, "5 ns", "7 ns"]);
        assert_eq!(picture.count("own"), if unit == "Filter" { 2 } else { 0 });
    }
}

#[test]
fn no_name_matters() {
    let names = [
        ("\"gpu", "\"card"),
        ("\"sm[", "\"core["),
        ("\"crossbar", "\"switch"),
        ("\"cpu", "\"host"),
        ("\"l2[", "\"cache["),
        ("\"hbm[", "\"ram["),
        ("\"command_link", "\"wire"),
    ];
    let rename = |text: &str| names.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    let node = rename(include_str!("../../../topologies/v100_node.ron"));
    let part = rename(include_str!("../../../topologies/parts/v100.ron"));
    let library = PartLibrary { files: vec![("parts/v100.ron", Box::leak(part.into_boxed_str()))] };
    let source = TopologySource::Text { name: "renamed.ron".to_owned(), text: node };
    let renamed = picture(&load_with(&source, &library, UNITS, &[]));
    let named = picture(&load("v100_node", &[]));
    let places = |picture: &Picture| {
        let places = picture.boxes.iter().map(|drawn| (drawn.class.clone(), drawn.area));
        places.collect::<Vec<_>>()
    };
    assert_eq!(places(&renamed), places(&named));
    assert_eq!(renamed.lines, named.lines);
    assert!(renamed.says("card") && !renamed.says("gpu") && renamed.says("host"));
}

#[test]
fn names_are_no_markup() {
    let text = include_str!("../../../topologies/v100_node.ron").replace("\"v100_node\"", "\"a < b & \\\"c\\\"\"");
    let svg = topology::svg(&load_text(&text));
    assert!(svg.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"), "{svg}");
}
