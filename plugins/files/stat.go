package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/hako-run/hako/pdk"
)

type statArgs struct {
	Path string `json:"path"`
}

type statResult struct {
	Exists bool `json:"exists"`
	entry
	MIMEType string `json:"mimeType,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

// stat is the tool file_stat. A missing file is an answer, not an error.
func stat(ctx context.Context, in statArgs) (*pdk.Result, error) {
	at, err := resolve(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	rel := at.path
	out := statResult{entry: entry{Path: rel}}
	info, err := os.Lstat(at.full)
	if errors.Is(err, fs.ErrNotExist) {
		text := say(ctx, "%s does not exist.", "%s はありません。", rel)
		return pdk.Text(text).WithStructured(out), nil
	}
	if err != nil {
		return nil, explain(rel, err)
	}
	out.Exists = true
	out.describe(info)
	text := rel + ": " + out.Type
	if out.Type == "file" {
		if err := out.look(at.full); err != nil {
			return nil, err
		}
		text = fmt.Sprintf("%s: %s %s, %d bytes, %s", rel, out.MIMEType, out.Encoding, out.Size, out.Modified)
	}
	return pdk.Text(text).WithStructured(out), nil
}

// look finds out by the content what a file is.
func (r *statResult) look(full string) error {
	f, err := openRegular(r.Path, full)
	if err != nil {
		return err
	}
	defer f.Close()
	if k := sniff(f.head); k != (kind{}) {
		r.MIMEType = k.mime
		return nil
	}
	e := bom(f.head)
	if e == nil {
		sample, err := f.sample()
		if err != nil {
			return err
		}
		e = guess(sample)
	}
	r.MIMEType, r.Encoding = "text/plain", "unknown"
	if e != nil {
		r.Encoding = e.name
	}
	return nil
}
