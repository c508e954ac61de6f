package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/pdk"
)

type writeArgs struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Overwrite   bool   `json:"overwrite"`
	Directories bool   `json:"createDirectories"`
	Encoding    string `json:"encoding"`
}

type writeResult struct {
	Success bool   `json:"success"`
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
	// Encoding is how the text is encoded now, Notes what was kept of the file that was replaced, or changed in it.
	Encoding string   `json:"encoding,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// write is the tool file_write. The content goes to a new file beside the old one, which it then replaces, so that no
// reader ever sees half of it.
func write(ctx context.Context, in writeArgs) (*pdk.Result, error) {
	at, err := resolve(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	rel, full := at.path, at.full
	exists, err := replaceable(rel, full, in.Overwrite)
	if err != nil {
		return nil, err
	}
	out := writeResult{Success: true, Path: rel, Created: !exists}
	content, err := in.encoded(ctx, at, &out)
	if err != nil {
		return nil, err
	}
	if err := refuseProgram(rel, content); err != nil {
		return nil, err
	}
	if in.Directories {
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, refuseHidden(path.Dir(rel))
		}
		if err != nil {
			return nil, explain(path.Dir(rel), err)
		}
	}
	if err := replace(full, content, in.Overwrite); err != nil {
		return nil, explainNew(at, err)
	}
	text := say(ctx, "Wrote %[2]d bytes to %[1]s.", "%s に %d バイトを書き込みました。", out.Path, out.Bytes)
	return pdk.Text(strings.Join(append([]string{text}, out.Notes...), "\n")).WithStructured(out), nil
}

// encoded is the content as bytes: in the encoding that is asked for, or else that of the file that is replaced.
func (in writeArgs) encoded(ctx context.Context, at location, out *writeResult) (content []byte, err error) {
	e := encodingNamed(in.Encoding)
	if out.Created {
		if e = cmp.Or(e, utf8Text); e.wide() {
			in.Content = "\ufeff" + strings.TrimPrefix(in.Content, "\ufeff")
		}
		content, err = e.write(in.Content)
	} else {
		var old *previous
		if old, err = lookAt(ctx, at, in.Encoding); err != nil {
			return nil, err
		}
		e = cmp.Or(e, old.encoding)
		content, out.Notes, err = old.encode(ctx, in.Content, e)
	}
	out.Bytes, out.Encoding = len(content), e.name
	return content, err
}

// write returns a text in an encoding.
func (e *encoding) write(text string) ([]byte, error) {
	data, missing := e.encode(text)
	if missing >= 0 {
		return nil, refuse(`the character %q does not exist in %s: write it as another one, or pass "encoding": "utf-8"`,
			`文字 %q は %s にありません。別の文字にするか、"encoding": "utf-8" を指定してください`, missing, e.name)
	}
	return data, nil
}

// refuseProgram refuses what some system would run, by the content, whatever the name, and by the name, whatever the
// content.
func refuseProgram(rel string, content []byte) error {
	if k, ok := program(content); ok {
		return refuse(
			"%s: the content is %[2]s, and executables are never written: leave it to the user to create this file",
			"%s: 内容が%[3]sです。実行可能ファイルは書き込めません。このファイルの作成は利用者に任せてください", rel, k.en, k.ja)
	}
	return refuseProgramName(rel)
}

func refuseProgramName(rel string) error {
	if ending := programName(rel); ending != "" {
		return refuse(`%s: names that end in %[2]q are those of executables, which are never written: use another ending, such as %[2]q + ".txt"`,
			`%s: %[2]q で終わる名前は実行可能ファイルのものなので書き込めません。別の拡張子(例: %[2]q の後に ".txt")にしてください`, rel, ending)
	}
	return nil
}

// replaceable reports whether something is at a path that may be overwritten.
func replaceable(rel, full string, overwrite bool) (exists bool, err error) {
	info, err := os.Lstat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(rel, `\`):
		return false, refuse(`%s: a new name must not hold control characters, "\" or bytes that are not UTF-8: choose another one`,
			`%s: 新しい名前に制御文字、"\"、UTF-8 でないバイトは使えません。別の名前にしてください`, rel)
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, explain(rel, err)
	case info.IsDir():
		return true, refuse("%s is a directory: name a file", "%s はディレクトリです。ファイル名を指定してください", rel)
	case info.Mode()&fs.ModeSymlink != 0:
		return true, refuse("%s is a symbolic link, and nothing is written through links: name the file it points to",
			"%s はシンボリックリンクです。リンク経由では書き込めません。リンク先のファイルを指定してください", rel)
	case !overwrite:
		return true, refuse(`%s exists already: pass "overwrite": true to replace it, or choose another name`,
			`%s は既に存在します。置き換えるには "overwrite": true を指定するか、別の名前にしてください`, rel)
	}
	return true, nil
}

// Temporary files are named so, with digits between. At its start hako removes old ones, which interrupted writes have
// left.
const tempPrefix, tempSuffix = "hako-write-", ".tmp"

func isTemporary(name string) bool {
	random, begins := strings.CutPrefix(name, tempPrefix)
	random, ends := strings.CutSuffix(random, tempSuffix)
	return begins && ends && random != "" && strings.Trim(random, "0123456789") == ""
}

// replace puts a file with the content at a path, all at once. Without overwrite it fails with fs.ErrExist if a file is
// there, even one that came up this moment.
func replace(full string, content []byte, overwrite bool) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(full), tempPrefix+"*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // The first error says more.
		}
	}()
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if overwrite {
		return os.Rename(temp.Name(), full)
	}
	return moveNew(temp.Name(), full)
}

// moveNew renames a file to a name that nothing has. The name is taken first, since renaming replaces.
func moveNew(from, to string) error {
	taken, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err = errors.Join(taken.Close(), os.Rename(from, to)); err != nil {
		_ = os.Remove(to) // The first error says more.
	}
	return err
}

// explainNew explains why a file cannot be made: often its directory is missing. If that is there, the name itself is
// hidden.
func explainNew(at location, err error) error {
	rel := at.path
	if !errors.Is(err, fs.ErrNotExist) {
		return explain(rel, err)
	}
	if _, err := os.Stat(filepath.Dir(at.full)); err != nil {
		return refuse(`the directory %s does not exist: pass "createDirectories": true to create it, or check the path with file_list`,
			`ディレクトリ %s がありません。作成するには "createDirectories": true を指定するか、file_list でパスを確認してください`, path.Dir(rel))
	}
	return refuseHidden(rel)
}
