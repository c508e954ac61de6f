package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/pdk"
)

type moveArgs struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Overwrite bool   `json:"overwrite"`
}

type moveResult struct {
	Success bool   `json:"success"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// move is the tool file_move.
func move(ctx context.Context, in moveArgs) (*pdk.Result, error) {
	source, err := resolve(ctx, in.From)
	if err != nil {
		return nil, err
	}
	target, err := resolve(ctx, in.To)
	if err != nil {
		return nil, err
	}
	from, to := source.path, target.path
	info, err := os.Lstat(source.full)
	if err != nil {
		return nil, explain(from, err)
	}
	if err := refuseMove(source, target, info); err != nil {
		return nil, err
	}
	if err := moveTo(source.full, target.full, to, info.IsDir(), in.Overwrite); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, explainNew(target, err)
		}
		return nil, explain(from, err)
	}
	return pdk.Text(say(ctx, "Moved %s to %s.", "%s を %s に移動しました。", from, to)).WithStructured(moveResult{true, from,
		to}), nil
}

func refuseMove(source, target location, info fs.FileInfo) error {
	from, to := source.path, target.path
	switch {
	case source.isRoot():
		return refuseRoot(source)
	case target.isRoot():
		return refuseRoot(target)
	case source.root != target.root:
		return refuse("%s and %s are in different directories (%s, %s), between which nothing can be moved: read the file, write it there, then delete it here",
			"%s と %s は別々のディレクトリ (%s、%s) にあり、間の移動はできません。読み込んで移動先に書き込み、元を削除してください", from, to, source.root, target.root)
	case info.IsDir() && strings.HasPrefix(to+"/", from+"/"):
		return refuse("%s cannot be moved into itself (%s): choose a place outside of it",
			"%s を自分自身の中 (%s) には移動できません。別の場所を指定してください", from, to)
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse(
			"%s is a symbolic link, which would lead elsewhere from another place: move the file it points to",
			"%s はシンボリックリンクで、移動すると別の場所を指してしまいます。リンク先のファイルを移動してください", from)
	case !info.IsDir() && programName(from) == "":
		return refuseProgramName(to)
	}
	return nil
}

// moveTo renames, and replaces a file only if asked to.
func moveTo(source, target, to string, directory, overwrite bool) error {
	if _, err := replaceable(to, target, overwrite); err != nil {
		return err
	}
	if overwrite || directory {
		return os.Rename(filepath.Clean(source), target)
	}
	return moveNew(source, target)
}
