package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
)

type listArgs struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
	extent
}

// extent is the requested part of a list.
type extent struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

// defaultLimit is the number of items in a list unless the caller says otherwise.
const defaultLimit = 50

// page describes how much of a list there is. It comes before the items, which a reader may not see all of.
type page struct {
	Count      int  `json:"count"`
	NextOffset *int `json:"next_offset"`
	Truncated  bool `json:"truncated"`

	limit, offset, passed int
}

func newPage(e extent) page {
	return page{limit: cmp.Or(e.Limit, defaultLimit), offset: e.Offset}
}

// next reports whether an item is in the part that is asked for. It returns fs.SkipAll after the last one.
func (p *page) next() (bool, error) {
	if p.passed++; p.passed <= p.offset {
		return false, nil
	}
	if p.Count == p.limit {
		next := p.offset + p.limit
		p.NextOffset, p.Truncated = &next, true
		return false, fs.SkipAll
	}
	p.Count++
	return true, nil
}

// note returns a line if there is more.
func (p *page) note(ctx context.Context) string {
	if p.NextOffset == nil {
		return ""
	}
	return say(ctx, "[%d of them; for the rest call again with \"offset\": %d]\n",
		"[%d 件を表示しています。続きは \"offset\": %d で取得してください]\n", p.Count, *p.NextOffset)
}

// entry describes one file, directory or link. The path is as callers know it.
type entry struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	Size     int64  `json:"size,omitempty"`
	Modified string `json:"modified,omitempty"`
}

type listResult struct {
	page
	Entries []entry `json:"entries"`
	// Unreadable counts the directories and entries that could not be looked at.
	Unreadable int `json:"unreadable,omitempty"`
}

// list is the tool file_list.
func list(ctx context.Context, in listArgs) (*pdk.Result, error) {
	from, err := starts(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	out := listResult{page: newPage(in.extent), Entries: []entry{}}
	visit := func(e entry, _ string) error {
		shown, err := out.next()
		if shown {
			out.Entries = append(out.Entries, e)
		}
		return err
	}
	last := len(from) - 1
	for _, r := range from[:last] {
		if err = walkRoot(ctx, r, cmp.Or(in.Depth, 1), &out.Unreadable, visit); err != nil {
			break
		}
	}
	if err == nil {
		err = walk(ctx, from[last], cmp.Or(in.Depth, 1), &out.Unreadable, visit)
	}
	if err != nil && !errors.Is(err, fs.SkipAll) {
		return nil, err
	}
	return pdk.Text(out.text(ctx, from[last].path)).WithStructured(out), nil
}

// walkRoot visits a root and what is below it, depth levels deep.
func walkRoot(ctx context.Context, at location, depth int, unreadable *int,
	visit func(e entry, full string) error) error {
	info, err := os.Stat(at.full)
	if err != nil {
		return explain(at.path, err)
	}
	e := entry{Path: at.path}
	e.describe(info)
	if err := visit(e, at.full); err != nil || depth == 1 {
		return err
	}
	return walk(ctx, at, depth-1, unreadable, visit)
}

// text is one line for each entry.
func (r listResult) text(ctx context.Context, rel string) string {
	var b strings.Builder
	b.WriteString(r.note(ctx))
	for _, e := range r.Entries {
		switch e.Type {
		case "directory":
			fmt.Fprintf(&b, "%s/\n", e.Path)
		case "file":
			fmt.Fprintf(&b, "%s (%d)\n", e.Path, e.Size)
		default:
			fmt.Fprintf(&b, "%s (%s)\n", e.Path, e.Type)
		}
	}
	if r.Unreadable > 0 {
		b.WriteString(say(ctx, "[%d directories or files in it cannot be read here]\n", "[読めないディレクトリやファイルが %d 件あります]\n",
			r.Unreadable))
	} else if len(r.Entries) == 0 {
		b.WriteString(say(ctx, "%s is empty.\n", "%s は空です。\n", rel))
	}
	return b.String()
}

// walk visits what is below a directory, depth levels deep, in lexical order. What a write is not done with is left out,
// and what cannot be read is counted. visit may return fs.SkipAll, which walk then returns too.
func walk(ctx context.Context, at location, depth int, unreadable *int,
	visit func(e entry, full string) error) error {
	info, err := os.Stat(at.full)
	if err != nil {
		return explain(at.path, err)
	}
	if !info.IsDir() {
		return refuse("%s is a file, not a directory: see it with file_stat or file_read",
			"%s はディレクトリではなくファイルです。file_stat か file_read を使ってください", at.path)
	}
	return walkInto(ctx, at.path, at.full, depth, unreadable, visit)
}

func walkInto(ctx context.Context, rel, full string, depth int, unreadable *int,
	visit func(e entry, full string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	children, err := os.ReadDir(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		*unreadable++
		return nil
	}
	if err != nil {
		return explain(rel, err)
	}
	for _, child := range children {
		if isTemporary(child.Name()) {
			continue
		}
		e, below := entry{Path: path.Join(rel, showName(child.Name()))}, filepath.Join(full, child.Name())
		info, err := child.Info()
		switch {
		case err == nil:
			e.describe(info)
			if err := visit(e, below); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist):
			*unreadable++
		}
		if child.IsDir() && depth > 1 {
			if err := walkInto(ctx, e.Path, below, depth-1, unreadable, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe fills in what is known of a file.
func (e *entry) describe(info fs.FileInfo) {
	e.Modified = info.ModTime().UTC().Format(time.RFC3339)
	switch {
	case info.IsDir():
		e.Type = "directory"
	case info.Mode().IsRegular():
		e.Type, e.Size = "file", info.Size()
	case info.Mode()&fs.ModeSymlink != 0:
		e.Type = "link"
	default:
		e.Type = "other"
	}
}
