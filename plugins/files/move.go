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
	from, source, err := resolve(in.From)
	if err != nil {
		return nil, err
	}
	to, target, err := resolve(in.To)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(source)
	if err != nil {
		return nil, explain(from, err)
	}
	if err := refuseMove(from, to, info); err != nil {
		return nil, err
	}
	if err := moveTo(source, target, to, info.IsDir(), in.Overwrite); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, writeArgs{}.explain(to, err)
		}
		return nil, explain(from, err)
	}
	return pdk.Text(say(ctx, "Moved %s to %s.", "%s を %s に移動しました。", from, to)).WithStructured(moveResult{true, from, to}), nil
}

func refuseMove(from, to string, info fs.FileInfo) error {
	switch {
	case from == "." || to == ".":
		return refuse("the workspace itself cannot be moved or replaced: name something in it",
			"ワークスペース自体は移動も置き換えもできません。その中のものを指定してください")
	case info.IsDir() && strings.HasPrefix(to+"/", from+"/"):
		return refuse("%s cannot be moved into itself (%s): choose a place outside of it",
			"%s を自分自身の中 (%s) には移動できません。別の場所を指定してください", from, to)
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse("%s is a symbolic link, which would lead elsewhere from another place: move the file it points to",
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
