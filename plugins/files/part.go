package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
)

// part is a range of a file, in bytes.
type part struct {
	offset, length int64
	nextLine       int // the number of the line after it, if it was asked for by lines and there is one
}

// part finds the range that a caller asks for.
func (f *regular) part(ctx context.Context, in readArgs) (part, error) {
	byBytes, byLines := in.Offset > 0 || in.Length > 0, in.Line > 0 || in.Lines > 0
	switch {
	case byBytes && byLines:
		return part{}, refuse(`give either "offset" and "length" or "line" and "lines", not both`,
			`"offset"/"length" と "line"/"lines" は同時に指定できません。どちらか一方にしてください`)
	case byLines:
		return f.lines(ctx, cmp.Or(encodingNamed(in.Encoding), bom(f.head)), max(in.Line, 1), in.Lines)
	case in.Offset > f.size:
		return part{}, refuse("%s has %d bytes, so nothing is at offset %d: choose a smaller one",
			"%s は %d バイトなので、offset %d には何もありません。小さい値にしてください", f.path, f.size, in.Offset)
	case in.Length == 0:
		in.Length = maxRead
	}
	return part{offset: in.Offset, length: min(in.Length, maxRead)}, nil
}

// lines finds the range of count lines from the first on, counted from 1; a count of 0 means as many as fit into
// maxRead. What does not fit is left for next time, in whole lines unless the very first is too long. e is the encoding
// if it is certain, or nil.
func (f *regular) lines(ctx context.Context, e *encoding, first, count int) (part, error) {
	if e != nil && e.wide() {
		return part{}, refuse(`%s is in %s, where lines cannot be counted: use "offset" and "length"`,
			`%s は %s なので行で指定できません。"offset" と "length" を使ってください`, f.path, e.name)
	}
	start, found, err := f.skipLines(ctx, 0, f.size, first-1)
	if err != nil {
		return part{}, err
	}
	if found < first-1 || start == f.size && first > 1 {
		return part{}, refuse("%s has %d lines, so there is no line %d: choose a smaller one",
			"%s は %d 行なので、%d 行目はありません。小さい値にしてください", f.path, found+f.lastLine(start), first)
	}
	if count == 0 {
		count = maxRead
	}
	limit := min(f.size, start+maxRead)
	end, found, err := f.skipLines(ctx, start, limit, count)
	if err != nil {
		return part{}, err
	}
	p := part{offset: start, length: limit - start}
	if end < f.size && (found == count || found > 0 && limit < f.size) {
		p.length, p.nextLine = end-start, first+found
	}
	return p, nil
}

// lastLine is 1 if a line without an end lies after offset.
func (f *regular) lastLine(offset int64) int {
	if offset < f.size {
		return 1
	}
	return 0
}

// skipLines goes over up to count line ends between from and limit. It returns the offset after the last, and how many
// there were.
func (f *regular) skipLines(ctx context.Context, from, limit int64, count int) (offset int64, found int, err error) {
	offset = from
	buf := make([]byte, 64<<10)
	for at := from; at < limit && found < count; {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		n, err := f.ReadAt(buf[:min(int64(len(buf)), limit-at)], at)
		if errors.Is(err, io.EOF) && n == 0 {
			break // it has become shorter
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, explain(f.path, err)
		}
		for rest := buf[:n]; found < count; found++ {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			offset = at + int64(n-len(rest))
		}
		at += int64(n)
	}
	return offset, found, nil
}
