//! The terminal view: drawn anew with each state, with keys that hold the run.

use super::client::Client;
use balar_live::state::{Gpu, LiveState, Phase};
use balar_live::text;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Wrap};
use std::io;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// Between two looks at keys and states.
const LOOK: Duration = Duration::from_millis(50);
/// Columns of a bar with its label and its number.
const LABEL: usize = 19;
const NUMBER: usize = 8;

/// Shows the run until it ends or the user leaves. Returns how it ended, or `None` where it goes on.
///
/// # Errors
///
/// If the terminal cannot be used.
pub fn show(client: &Client, state: LiveState) -> io::Result<Option<String>> {
    let mut terminal = ratatui::try_init()?;
    let ended = follow(client, state, &mut terminal);
    // The terminal is as it was before anything else is said.
    ratatui::try_restore()?;
    ended
}

fn follow(
    client: &Client,
    mut state: LiveState,
    terminal: &mut ratatui::DefaultTerminal,
) -> io::Result<Option<String>> {
    let states = client.follow()?;
    let mut note = String::new();
    let mut has_changed = true;
    loop {
        if std::mem::take(&mut has_changed) {
            terminal.draw(|frame| draw(frame, &state, &note))?;
        }
        if event::poll(LOOK)? {
            // The terminal may have another size now.
            has_changed = true;
            match key(&event::read()?) {
                Some(Key::Quit) => return Ok(None),
                Some(Key::Order(path)) => {
                    note = client.order(path).err().map(|error| error.to_string()).unwrap_or_default();
                }
                None => {}
            }
        }
        loop {
            match states.try_recv() {
                Ok(next) => (state, has_changed) = (next, true),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    let gone = || "it is gone: its process was killed, or ended at once".to_owned();
                    return Ok(Some(state.ending.clone().unwrap_or_else(gone)));
                }
            }
        }
    }
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Quit,
    Order(&'static str),
}

fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char('p') => Some(Key::Order("/api/pause")),
        KeyCode::Char('r') => Some(Key::Order("/api/resume")),
        KeyCode::Char('s') => Some(Key::Order("/api/step?time=1us")),
        KeyCode::Char('S') => Some(Key::Order("/api/step?time=10us")),
        _ => None,
    }
}

fn draw(frame: &mut Frame<'_>, state: &LiveState, note: &str) {
    let gpus = state.gpus.iter().map(gpu_height).sum::<u16>();
    let is_still = state.still_seconds > 3.0 && !state.waiting.is_empty();
    let waiting = if is_still || state.phase == Phase::Held { (state.waiting.len() as u16 + 1).min(8) } else { 0 };
    let [head, progress, kernels, of_gpus, of_waiting, foot] = Layout::vertical([
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(gpus.min(frame.area().height / 2)),
        Constraint::Length(waiting),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, state);
    draw_progress(frame, progress, state);
    draw_kernels(frame, kernels, state);
    draw_gpus(frame, of_gpus, state);
    if waiting > 0 {
        let lines = state.waiting.iter().map(|line| Line::from(line.as_str())).collect::<Vec<_>>();
        let title = format!(" what units wait for, at {} ", text::simulated(state.sampled_ps));
        frame.render_widget(Paragraph::new(lines).block(Block::new().title(title.bold())), of_waiting);
    }
    let keys = "p pause  s step 1 us  S step 10 us  r resume  q leave the run alone";
    let line = if note.is_empty() { Line::from(keys).dim() } else { Line::from(note.to_owned()).red() };
    frame.render_widget(line, foot);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, state: &LiveState) {
    let run = &state.run;
    let colour = match state.phase {
        Phase::Running => Color::Green,
        Phase::Held => Color::Yellow,
        _ => Color::Cyan,
    };
    let title = Line::from(vec![
        Span::from(format!("{} on {}", run.workload, run.topology)).bold(),
        Span::from(format!("  process {}  ", run.pid)),
        Span::from(text::phase(state)).fg(colour).bold(),
    ]);
    let time = format!("simulated {} in {:.1} s of real time", text::simulated(state.sim_ps), state.wall_seconds);
    let last = match state.silence() {
        Some(silence) => Line::from(silence).red(),
        None => Line::from(text::left(state)),
    };
    let lines = vec![title, Line::from(time), Line::from(text::rates(state)), last];
    frame.render_widget(Paragraph::new(lines), area);
}

/// A bar where the whole is known; none where it is not.
fn draw_progress(frame: &mut Frame<'_>, area: Rect, state: &LiveState) {
    let done = state.ctas_ended;
    match (state.estimate.fraction, state.ctas_planned) {
        (Some(fraction), Some(planned)) => {
            let label = format!("{done} of {planned} CTAs");
            let style = Style::new().fg(Color::Blue).bg(Color::DarkGray);
            frame.render_widget(Gauge::default().ratio(fraction.clamp(0.0, 1.0)).label(label).gauge_style(style), area);
        }
        _ => frame
            .render_widget(Line::from(format!("{done} CTAs have ended; how many there will be is not known")), area),
    }
}

fn draw_kernels(frame: &mut Frame<'_>, area: Rect, state: &LiveState) {
    let room = usize::from(area.height.saturating_sub(1));
    // What runs is at the end of the list.
    let shown = state.kernels.iter().skip(state.kernels.len().saturating_sub(room));
    let lines = shown.map(|kernel| {
        let line = Line::from(text::kernel(kernel));
        if kernel.end_ps.is_none() { line.add_modifier(Modifier::BOLD) } else { line.dim() }
    });
    let title = format!(" kernels, {} have ended ", state.kernels_ended);
    let lines: Vec<Line<'_>> = lines.collect();
    let block = Block::new().title(title.bold());
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

fn gpu_height(gpu: &Gpu) -> u16 {
    gpu.utilisation.len().max(gpu.stalls.len().min(8)) as u16 + 1
}

fn draw_gpus(frame: &mut Frame<'_>, area: Rect, state: &LiveState) {
    let heights = state.gpus.iter().map(|gpu| Constraint::Length(gpu_height(gpu)));
    let areas = Layout::vertical(heights).split(area);
    for (gpu, area) in state.gpus.iter().zip(areas.iter()) {
        let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(*area);
        for (area, title, shares, colour) in [
            (left, format!(" {}: utilisation ", gpu.name), &gpu.utilisation, Color::Green),
            (right, " warps: what they did ".to_owned(), &gpu.stalls, Color::Magenta),
        ] {
            let lines: Vec<Line<'_>> =
                shares.iter().map(|share| bar(&share.name, share.percent, area.width, colour)).collect();
            frame.render_widget(Paragraph::new(lines).block(Block::new().title(title.bold())), area);
        }
    }
}

/// A bar of blocks, with its name before it and its number after it.
fn bar(name: &str, percent: Option<f64>, width: u16, colour: Color) -> Line<'static> {
    let room = usize::from(width).saturating_sub(LABEL + NUMBER + 1);
    let share = percent.unwrap_or(0.0).clamp(0.0, 100.0) / 100.0;
    let full = (share * room as f64).round() as usize;
    let number = percent.map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
    let name: String = name.chars().take(LABEL - 1).collect();
    Line::from(vec![
        Span::from(format!("{name:<LABEL$}")),
        Span::from("\u{2588}".repeat(full)).fg(colour),
        Span::from("\u{2591}".repeat(room.saturating_sub(full))).dim(),
        Span::from(format!("{number:>NUMBER$}")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_live::state::{Estimate, Kernel, Share};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyEvent;

    fn state() -> LiveState {
        let share = |name: &str, percent| Share { name: name.to_owned(), percent };
        let gpu = Gpu {
            name: "gpu".to_owned(),
            utilisation: vec![share("issue slots", Some(50.0)), share("L2", None)],
            stalls: vec![share("long_scoreboard", Some(75.0))],
            ..Gpu::default()
        };
        let kernel =
            Kernel { name: "lud".to_owned(), gpu: "gpu".to_owned(), ctas: 8, ctas_ended: 3, ..Kernel::default() };
        let estimate = Estimate { fraction: Some(0.375), basis: "from CTAs".to_owned(), seconds_left: Some(5.0) };
        let (kernels, gpus) = (vec![kernel], vec![gpu]);
        LiveState {
            phase: Phase::Running,
            ctas_planned: Some(8),
            ctas_ended: 3,
            estimate,
            kernels,
            gpus,
            ..LiveState::default()
        }
    }

    fn drawn(width: u16, height: u16, state: &LiveState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("in memory");
        terminal.draw(|frame| draw(frame, state, "")).expect("drawn");
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_screen_shows_the_run_at_any_size() {
        let text = drawn(100, 30, &state());
        for part in [
            "running",
            "3 of 8 CTAs",
            "#0 lud on gpu",
            "about 5 seconds left",
            "issue slots",
            "50.0 %",
            "long_scoreboard",
            "p pause",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let unknown = LiveState { ctas_planned: None, estimate: Estimate::default(), ..state() };
        assert!(drawn(100, 30, &unknown).contains("3 CTAs have ended; how many there will be is not known"));
        // Small ones do not panic.
        for (width, height) in [(1, 1), (20, 5), (400, 3)] {
            drawn(width, height, &state());
        }
    }

    #[test]
    fn what_units_wait_for_is_shown_where_the_run_stands_still() {
        let waiting = vec!["cpu: waits for launch 3".to_owned()];
        let mut state = LiveState { waiting, ..state() };
        assert!(!drawn(100, 30, &state).contains("waits for launch 3"));
        state.still_seconds = 10.0;
        assert!(drawn(100, 30, &state).contains("waits for launch 3"));
    }

    #[test]
    fn keys_hold_the_run() {
        let of = |code, modifiers| key(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::Quit));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(of(KeyCode::Char('p'), KeyModifiers::NONE), Some(Key::Order("/api/pause")));
        assert_eq!(key(&Event::FocusGained), None);
    }
}
