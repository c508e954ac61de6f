package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/pdk"
)

const (
	maxSearchFiles = 20_000   // files that one search looks at
	maxSearchBytes = 64 << 20 // bytes that one search reads
	maxSearchFile  = 4 << 20  // bytes of one file that are searched
	maxSearchDepth = 32       // levels of directories
	maxExcerpt     = 240      // bytes of a line in a match
	maxFileLines   = 20       // lines of one file in an answer, so that it shows other files too; with a limit all of them
)

type searchArgs struct {
	Path       string `json:"path"`
	Name       string `json:"name"`
	Text       string `json:"text"`
	IgnoreCase bool   `json:"ignoreCase"`
	extent
}

// match is a file, or a line in it if text was searched for.
type match struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"`
}

type searchResult struct {
	page
	Matches []match `json:"matches"`
	LeftOut leftOut `json:"left_out,omitzero"`
}

// leftOut counts what a search did not look into.
type leftOut struct {
	NotText    int `json:"not_text,omitempty"`   // files that are not text, or in no encoding that can be told
	Unreadable int `json:"unreadable,omitempty"` // files and directories that cannot be opened
	InPart     int `json:"in_part,omitempty"`    // files that were searched in part
	Lines      int `json:"lines,omitempty"`      // lines that match, in files with many
}

// searching is one search under way.
type searching struct {
	searchArgs
	name        *glob
	files, read int64
	out         searchResult
}

// search is the tool file_search.
func search(ctx context.Context, in searchArgs) (*pdk.Result, error) {
	if in.Name == "" && in.Text == "" {
		return nil, refuse(`there is nothing to search for: give "name", a glob such as "**/*.md", or "text"`,
			`検索条件がありません。"name" (例: "**/*.md") か "text" を指定してください`)
	}
	from, err := starts(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	s := &searching{searchArgs: in, out: searchResult{page: newPage(in.extent), Matches: []match{}}}
	if s.name, err = parseGlob(compose(in.Name)); err != nil {
		return nil, err
	}
	s.Text = s.comparable(in.Text)
	for _, at := range from {
		err := walk(ctx, at, maxSearchDepth, &s.out.LeftOut.Unreadable, func(e entry, full string) error { return s.visit(e, full, at.path) })
		if errors.Is(err, fs.SkipAll) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return pdk.Text(s.out.text(ctx)).WithStructured(s.out), nil
}

// visit looks at one file, which is at full.
func (s *searching) visit(e entry, full, below string) error {
	if s.files++; s.files > maxSearchFiles {
		return s.stop()
	}
	rel := e.Path
	if below != "." {
		rel = strings.TrimPrefix(e.Path, below+"/")
	}
	if s.Name != "" && !s.name.match(compose(rel)) {
		return nil
	}
	if s.Text == "" {
		return s.found(match{Path: e.Path})
	}
	if e.Type != "file" {
		return nil
	}
	return s.lines(e, full)
}

// lines searches one file, or counts it as left out.
func (s *searching) lines(e entry, full string) error {
	if s.read += min(e.Size, maxSearchFile); s.read > maxSearchBytes {
		return s.stop()
	}
	f, err := openRegular(e.Path, full)
	if err != nil {
		s.out.LeftOut.Unreadable++
		return nil
	}
	defer f.Close()
	if f.isText(nil) != nil {
		s.out.LeftOut.NotText++
		return nil
	}
	raw, err := f.at(0, maxSearchFile)
	if err != nil {
		s.out.LeftOut.Unreadable++
		return nil
	}
	f.more = raw[:min(len(raw), sampled)]
	mark := min(bomSize(f.head), int64(len(raw)))
	d, err := f.decode("", raw[mark:], mark)
	if err != nil {
		s.out.LeftOut.NotText++
		return nil
	}
	if e.Size > maxSearchFile {
		s.out.Truncated = true
		s.out.LeftOut.InPart++
	}
	return s.inText(e.Path, stringOf(d.text))
}

// comparable returns a text in the form in which texts are compared.
func (s *searching) comparable(text string) string {
	if s.IgnoreCase {
		text = strings.ToLower(text)
	}
	return compose(text)
}

// inText reports the lines of a text that hold what is searched for, each once.
func (s *searching) inText(path, text string) error {
	if !strings.Contains(s.comparable(text), s.Text) {
		return nil
	}
	n, matches := 0, 0
	for line := range strings.Lines(text) {
		n++
		at := strings.Index(s.comparable(line), s.Text)
		if at < 0 {
			continue
		}
		if matches++; s.Limit == 0 && matches > maxFileLines {
			s.out.LeftOut.Lines++
			continue
		}
		if err := s.found(match{path, n, excerpt(line, min(at, len(line)))}); err != nil {
			return err
		}
	}
	return nil
}

// excerpt cuts a long line to what is around a place in it.
func excerpt(line string, at int) string {
	line = strings.TrimRight(line, "\r\n")
	if len(line) <= maxExcerpt {
		return line
	}
	from := max(0, min(at-maxExcerpt/4, len(line)-maxExcerpt))
	to := min(len(line), from+maxExcerpt)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	return "…" + line[from:to] + "…"
}

func (s *searching) found(m match) error {
	shown, err := s.out.next()
	if shown {
		s.out.Matches = append(s.out.Matches, m)
	}
	return err
}

// stop ends the search early.
func (s *searching) stop() error {
	s.out.Truncated = true
	return fs.SkipAll
}

func (r searchResult) text(ctx context.Context) string {
	var b strings.Builder
	b.WriteString(r.note(ctx))
	if left := r.LeftOut; left.NotText+left.Unreadable > 0 {
		b.WriteString(say(ctx, "[not searched: %d files that are not text, %d files or directories that cannot be read]\n",
			"[検索していないもの: テキストでないファイル %d 件、読めないファイルやディレクトリ %d 件]\n", left.NotText, left.Unreadable))
	}
	if n := r.LeftOut.Lines; n > 0 {
		b.WriteString(say(ctx, "[%d more lines match in files with many: pass \"limit\" to see all of them]\n",
			"[一致の多いファイルの %d 行を省略しています。\"limit\" を指定するとすべて表示します]\n", n))
	}
	if r.Truncated && r.NextOffset == nil {
		b.WriteString(say(ctx, "[not everything was searched: narrow \"path\" or \"name\"]\n",
			"[すべては検索されていません。\"path\" や \"name\" で絞ってください]\n"))
	}
	for _, m := range r.Matches {
		if m.Line == 0 {
			fmt.Fprintf(&b, "%s\n", m.Path)
			continue
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", m.Path, m.Line, m.Text)
	}
	if len(r.Matches) == 0 {
		b.WriteString(say(ctx, "No match.\n", "見つかりませんでした。\n"))
	}
	return b.String()
}

// glob is a pattern of path elements; "**" stands for any number of them. A pattern of one element matches names
// anywhere.
type glob struct{ parts []string }

func parseGlob(pattern string) (*glob, error) {
	parts := strings.Split(strings.TrimPrefix(pattern, "./"), "/")
	for _, p := range parts {
		if _, err := path.Match(p, ""); err != nil {
			return nil, refuse(`the pattern %q is malformed: use "*", "?", "[a-z]" and "**", as in "docs/**/*.md"`,
				`パターン %q が正しくありません。"docs/**/*.md" のように "*"、"?"、"[a-z]"、"**" を使ってください`, pattern)
		}
	}
	if len(parts) == 1 {
		parts = append([]string{"**"}, parts...)
	}
	return &glob{parts}, nil
}

func (g *glob) match(name string) bool { return matchParts(g.parts, strings.Split(name, "/")) }

// matchParts remembers only the last "**", which is enough: an earlier one need not take more once a later one is
// reached.
func matchParts(parts, names []string) bool {
	p, n, star, taken := 0, 0, -1, 0
	for n < len(names) {
		if p < len(parts) && parts[p] == "**" {
			star, taken = p, n
			p++
			continue
		}
		if p < len(parts) {
			if ok, _ := path.Match(parts[p], names[n]); ok {
				p, n = p+1, n+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		taken++
		p, n = star+1, taken
	}
	for p < len(parts) && parts[p] == "**" {
		p++
	}
	return p == len(parts)
}
