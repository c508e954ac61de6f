package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
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
	// Replaced counts the bytes that are no text in the encoding and shown as U+FFFD.
	Replaced int `json:"replaced,omitempty"`
}

// read is the tool file_read.
func read(ctx context.Context, in readArgs) (*pdk.Result, error) {
	at, err := resolve(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(at.path, at.full)
	if err != nil {
		return nil, elsewhere(ctx, at, err)
	}
	defer f.Close()
	if in.As == "image" {
		return f.image()
	}
	if err := f.isText(encodingNamed(in.Encoding)); err != nil {
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
	more []byte // the sample, once it was read
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

// sample reads the bytes from which the encoding is guessed.
func (f *regular) sample() (sample []byte, err error) {
	if f.more == nil {
		f.more, err = f.at(0, sampled)
	}
	return f.more, err
}

// isText refuses a file that its content shows to be something else. UTF-16 without a mark looks like binary data, so
// it is text if the caller names it.
func (f *regular) isText(named *encoding) error {
	k := sniff(f.head)
	switch {
	case k == data && named != nil && named.wide():
		return nil
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

// text returns a part of the file as a text block, and what is to be said of it in a second one.
func (f *regular) text(ctx context.Context, p part, name string) (*pdk.Result, error) {
	raw, err := f.at(p.offset, p.length)
	if err != nil {
		return nil, err
	}
	if p.offset == 0 {
		if f.more == nil && int64(len(raw)) >= min(f.size, sampled) {
			f.more = raw[:min(len(raw), sampled)]
		}
		mark := bomSize(f.head)
		raw, p.offset = raw[min(mark, int64(len(raw))):], mark
	}
	d, err := f.decode(name, raw, p.offset)
	if err != nil {
		return nil, err
	}
	out := readResult{Encoding: d.encoding.name, Size: f.size, Offset: p.offset, NextLine: p.nextLine, Replaced: d.bad}
	result := new(pdk.Result).AddTextBytes(d.text)
	var notes []string
	if next := p.offset + int64(d.size); next < f.size {
		out.NextOffset = next
		notes = append(notes, rest(ctx, out))
	}
	if d.bad > 0 {
		notes = append(notes, say(ctx,
			`[%d bytes are not valid %s and shown as U+FFFD (\ufffd); leave that where it is to keep them when you write the file back. If the text looks garbled, name another "encoding"]`,
			`[%d バイトは %s として正しくないため U+FFFD (\ufffd) で表示しています。書き戻すときにこの文字をそのまま残せば元のバイトが保たれます。文字化けしている場合は別の "encoding" を指定してください]`,
			d.bad, d.encoding.name))
	}
	if len(notes) > 0 {
		result.AddText(strings.Join(notes, "\n"))
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

// decoded is text that was in an encoding, and how many bytes it took; bad of them are shown as U+FFFD.
type decoded struct {
	encoding  *encoding
	text      []byte
	size, bad int
}

// decode decodes raw, which lies at offset, in the named encoding or the one that the file seems to be in. It refuses
// what would mostly be replaced.
func (f *regular) decode(name string, raw []byte, offset int64) (decoded, error) {
	e := encodingNamed(name)
	if e == nil {
		var err error
		if e, err = f.encoding(raw); err != nil {
			return decoded{}, err
		}
	}
	d := e.at(raw, max(0, offset-bomSize(f.head)), offset+int64(len(raw)) >= f.size)
	switch {
	case e.wide() && offset%2 != 0, name == e.name && d.unreadable():
		return decoded{}, refuse(`%[1]s is not valid %[2]s from byte %[3]d on: leave "encoding" out, or choose an offset where a character begins`,
			`%[1]s は %[3]d バイト目以降が %[2]s として正しくありません。"encoding" を外すか、文字の先頭になる offset を指定してください`, f.path, e.name, offset)
	case d.unreadable():
		return decoded{}, refuse(`%s is not valid UTF-8, nor surely Shift_JIS or EUC-JP: name another "encoding", "iso-8859-1" to see every byte as a character`,
			`%s は UTF-8 として正しくなく、Shift_JIS や EUC-JP とも判定できません。別の "encoding" を指定してください("iso-8859-1" なら各バイトを 1 文字として読めます)`,
			f.path)
	}
	return d, nil
}

// encoding returns the encoding that the file seems to be in, for its part raw; UTF-8 if that cannot be told.
func (f *regular) encoding(raw []byte) (*encoding, error) {
	if e := bom(f.head); e != nil {
		return e, nil
	}
	sample, err := f.sample()
	if err != nil {
		return nil, err
	}
	e := guess(sample)
	if e == utf8Text && isASCII(sample) { // what tells the encoding comes later
		e = guess(raw)
	}
	return cmp.Or(e, utf8Text), nil
}

// unreadable reports whether more than half of what is to be seen is not the text but replaces bytes of it.
func (d decoded) unreadable() bool {
	if d.bad == 0 {
		return false
	}
	seen := 0
	for _, r := range stringOf(d.text) {
		if !unicode.IsSpace(r) {
			seen++
		}
	}
	return 2*d.bad > seen
}

// at decodes a part of a file, whose offset is counted from the end of the mark. In UTF-8 an offset within a character means the next one; the end of a character that
// the part cuts off is left for the next, unless there is nothing else, and replaced if it is the last part.
func (e *encoding) at(raw []byte, offset int64, last bool) decoded {
	skipped := 0
	for e == utf8Text && offset > 0 && skipped < min(len(raw), utf8.UTFMax-1) && !utf8.RuneStart(raw[skipped]) {
		skipped++
	}
	raw = raw[skipped:]
	text, n, bad := e.decode(raw)
	if cut := len(raw) - n; cut > 0 && (last || n == 0) {
		text, n, bad = append(slices.Clip(text), strings.Repeat("\ufffd", cut)...), len(raw), bad+cut
	}
	return decoded{e, text, skipped + n, bad}
}
