package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/hako-run/hako/pdk"
)

const (
	maxRead  = 1 << 20 // bytes of a file that one call returns
	maxImage = 3 << 20 // bytes of an image that one call returns
)

type readArgs struct {
	Path     string `json:"path"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length"`
	Line     int    `json:"line"`
	Lines    int    `json:"lines"`
	Encoding string `json:"encoding"`
	As       string `json:"as"`
}

type readResult struct {
	// Content is left out where the text crosses as raw bytes.
	Content  string `json:"content,omitempty"`
	Encoding string `json:"encoding,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	Size     int64  `json:"size"`
	Offset   int64  `json:"offset"`
	// NextOffset and NextLine say where to go on; absent at the end of the file.
	NextOffset int64 `json:"nextOffset,omitempty"`
	NextLine   int   `json:"nextLine,omitempty"`
}

// read is the tool file_read.
func read(ctx context.Context, in readArgs) (*pdk.Result, error) {
	at, err := resolve(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(at.path, at.full)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if in.As == "image" {
		return f.image()
	}
	if err := f.isText(); err != nil {
		return nil, err
	}
	part, err := f.part(ctx, in)
	if err != nil {
		return nil, err
	}
	return f.text(ctx, part, in.Encoding)
}

// regular is an open file with what all tools want to know of it.
type regular struct {
	*os.File
	path string // as callers know it
	size int64
	head []byte // the first bytes
}

// openRegular opens the file at full to read it. rel is the path as callers know it.
func openRegular(rel, full string) (f *regular, err error) {
	info, err := os.Stat(full)
	if err != nil {
		return nil, explain(rel, err)
	}
	if info.IsDir() {
		return nil, refuse("%s is a directory: list it with file_list", "%s はディレクトリです。file_list で一覧してください", rel)
	}
	file, err := os.Open(full)
	if err != nil {
		return nil, explain(rel, err)
	}
	f = &regular{File: file, path: rel, size: info.Size()}
	if f.head, err = f.at(0, sniffed); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// at reads up to length bytes from offset on.
func (f *regular) at(offset, length int64) ([]byte, error) {
	data := make([]byte, max(0, min(length, f.size-offset)))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(f.path, err)
	}
	return data[:n], nil
}

// isText refuses a file that its content shows to be something else.
func (f *regular) isText() error {
	k := sniff(f.head)
	switch {
	case k.image:
		return refuse(`%s is not text but %[2]s (%[4]d bytes): read it with "as": "image"`,
			`%s はテキストではなく%[3]sです (%[4]d バイト)。"as": "image" を指定すると画像として読めます`, f.path, k.en, k.ja, f.size)
	case k != (kind{}):
		return refuse(
			"%s is not text but %[2]s (%[4]d bytes), told by its content: file_read returns text and images only",
			"%s はテキストではなく%[3]sです (%[4]d バイト、内容で判定)。file_read で読めるのはテキストと画像だけです", f.path, k.en, k.ja, f.size)
	case iso2022JP(f.head):
		return refuse("%s is text in ISO-2022-JP (JIS), which cannot be decoded here: have it converted to UTF-8",
			"%s は ISO-2022-JP (JIS) のテキストで、ここでは復号できません。UTF-8 に変換してください", f.path)
	}
	return nil
}

// image returns the file as an image block.
func (f *regular) image() (*pdk.Result, error) {
	k := sniff(f.head)
	if !k.image {
		return nil, refuse(`%s is not an image that clients can show (PNG, JPEG, GIF, WebP), told by its content: leave "as" out to read text`,
			`%s は表示できる画像 (PNG, JPEG, GIF, WebP) ではありません(内容で判定)。テキストとして読むには "as" を外してください`, f.path)
	}
	if f.size > maxImage {
		return nil, refuse("%s has %d bytes, more than the %d that an image may have: have it made smaller",
			"%s は %d バイトで、画像の上限 %d バイトを超えています。小さくしてください", f.path, f.size, maxImage)
	}
	content, err := f.at(0, maxImage)
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("%s: %s, %d bytes", f.path, k.mime, f.size)
	return new(pdk.Result).AddImage(k.mime, content).WithStructured(readResult{Content: about, MIMEType: k.mime,
		Size: f.size}), nil
}

// text returns a part of the file as a text block, and what follows it in a second one.
func (f *regular) text(ctx context.Context, p part, name string) (*pdk.Result, error) {
	raw, err := f.at(p.offset, p.length)
	if err != nil {
		return nil, err
	}
	if mark := bomSize(f.head); p.offset == 0 {
		raw, p.offset = raw[min(mark, int64(len(raw))):], mark
	}
	d, err := f.decode(name, raw, p.offset)
	if err != nil {
		return nil, err
	}
	out := readResult{Encoding: d.encoding.name, Size: f.size, Offset: p.offset, NextLine: p.nextLine}
	result := new(pdk.Result).AddTextBytes(d.text)
	if next := p.offset + int64(d.size); next < f.size {
		out.NextOffset = next
		result.AddText(rest(ctx, out))
	}
	return result.WithStructured(out).WithStructuredText("content", d.text), nil
}

// rest returns the line about where to read on.
func rest(ctx context.Context, r readResult) string {
	where := fmt.Sprintf(`"offset": %d`, r.NextOffset)
	if r.NextLine > 0 {
		where = fmt.Sprintf(`"line": %d`, r.NextLine)
	}
	return say(ctx, "[bytes %[1]d to %[3]d of %[2]d; go on with %[4]s]",
		"[%[2]d バイト中 %[1]d から %[3]d バイト目の手前まで。続きは %[4]s で読めます]",
		r.Offset, r.Size, r.NextOffset, where)
}

// decoded is text that was in an encoding, and how many bytes it took.
type decoded struct {
	encoding *encoding
	text     []byte
	size     int
}

// decode decodes raw, which lies at offset, in the named encoding or the one that the file seems to be in.
func (f *regular) decode(name string, raw []byte, offset int64) (decoded, error) {
	e, certain := encodingNamed(name), true
	if e == nil {
		e = bom(f.head)
	}
	if e == nil {
		e, certain = guess(f.head), false
	}
	if e != nil {
		if d, err := e.at(raw, offset); err == nil {
			return d, nil
		}
	}
	if certain {
		return decoded{}, refuse(`%[1]s is not valid %[2]s from byte %[3]d on: leave "encoding" out, or choose an offset where a character begins`,
			`%[1]s は %[3]d バイト目以降が %[2]s として正しくありません。"encoding" を外すか、文字の先頭になる offset を指定してください`, f.path, e.name, offset)
	}
	if e = guess(raw); e == nil {
		return decoded{}, refuse(`%s is not valid UTF-8, nor Shift_JIS or EUC-JP: name another "encoding", "iso-8859-1" to see every byte as a character`,
			`%s は UTF-8 としても Shift_JIS や EUC-JP としても正しくありません。別の "encoding" を指定してください("iso-8859-1" なら各バイトを 1 文字として読めます)`,
			f.path)
	}
	return e.at(raw, offset)
}

// at decodes a part of a file. In UTF-8 an offset within a character means the next one; the end of a character that
// the part cuts off is left for the next, and replaced if there is nothing else.
func (e *encoding) at(raw []byte, offset int64) (decoded, error) {
	skipped := 0
	for e == utf8Text && offset > 0 && skipped < min(len(raw), utf8.UTFMax-1) && !utf8.RuneStart(raw[skipped]) {
		skipped++
	}
	text, n, err := e.decode(raw[skipped:])
	if err == nil && offset%2 != 0 && (e == utf16LE || e == utf16BE) {
		err = errMalformed
	}
	if n == 0 && len(raw) > 0 {
		text, n = []byte("\ufffd"), len(raw)-skipped
	}
	return decoded{e, text, skipped + n}, err
}
