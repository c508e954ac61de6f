wit_bindgen::generate!({ inline: "
    package hako:shapes@1.2.3;

    interface types {
      record point { x: s32, y: s32, label: option<string> }
      variant shape { empty, dot(point), line(tuple<point, point>), polygon(list<point>) }
      enum color { red, green, dark-blue }
      flags style { bold, italic, under-lined }
    }

    interface draw {
      use types.{point, shape, color, style};

      /// Returns the shape, moved.
      move-shape: func(shape: shape, by: point) -> shape;
      /// Returns the next color and the style without its first flag.
      next: func(color: color, style: style) -> tuple<color, style>;
      /// Divides, and fails for zero.
      divide: func(a: s64, b: s64) -> result<s64, string>;
      /// Returns the value, or nothing for nothing.
      maybe: func(value: option<option<u8>>) -> option<option<u8>>;
      /// Returns each number as it came.
      numbers: func(a: u8, b: s8, c: u16, d: s16, e: u32, f: s32, g: u64, h: s64, i: f32, j: f64, k: char, l: bool)
        -> list<string>;
      /// Returns the words, the longest first.
      sort: func(words: list<string>) -> list<string>;
    }

    world shapes {
      export draw;
      /// Adds up all numbers.
      export sum: func(numbers: list<list<u64>>) -> u64;
    }
" });

use exports::hako::shapes::draw::{Color, Guest as Draw, Point, Shape, Style};

struct Component;

fn moved(p: Point, by: &Point) -> Point {
    Point { x: p.x.wrapping_add(by.x), y: p.y.wrapping_add(by.y), label: p.label.or_else(|| by.label.clone()) }
}

impl Draw for Component {
    fn move_shape(shape: Shape, by: Point) -> Shape {
        match shape {
            Shape::Empty => Shape::Empty,
            Shape::Dot(p) => Shape::Dot(moved(p, &by)),
            Shape::Line((a, b)) => Shape::Line((moved(a, &by), moved(b, &by))),
            Shape::Polygon(points) => Shape::Polygon(points.into_iter().map(|p| moved(p, &by)).collect()),
        }
    }

    fn next(color: Color, style: Style) -> (Color, Style) {
        let color = match color {
            Color::Red => Color::Green,
            Color::Green => Color::DarkBlue,
            Color::DarkBlue => Color::Red,
        };
        (color, style - Style::BOLD)
    }

    fn divide(a: i64, b: i64) -> Result<i64, String> {
        a.checked_div(b).ok_or_else(|| format!("{a} cannot be divided by {b}"))
    }

    fn maybe(value: Option<Option<u8>>) -> Option<Option<u8>> {
        value
    }

    fn numbers(
        a: u8, b: i8, c: u16, d: i16, e: u32, f: i32, g: u64, h: i64, i: f32, j: f64, k: char, l: bool,
    ) -> Vec<String> {
        vec![
            a.to_string(), b.to_string(), c.to_string(), d.to_string(), e.to_string(), f.to_string(),
            g.to_string(), h.to_string(), i.to_string(), j.to_string(), k.to_string(), l.to_string(),
        ]
    }

    fn sort(mut words: Vec<String>) -> Vec<String> {
        words.sort_by_key(|w| std::cmp::Reverse(w.len()));
        words
    }
}

impl Guest for Component {
    fn sum(numbers: Vec<Vec<u64>>) -> u64 {
        numbers.into_iter().flatten().fold(0, u64::wrapping_add)
    }
}

export!(Component);
