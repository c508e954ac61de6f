package main

import (
	"context"
	"os"

	"github.com/hako-run/hako/pdk"
)

type removeArgs struct {
	Path string `json:"path"`
}

type removeResult struct {
	Success bool   `json:"success"`
	Path    string `json:"path"`
}

// remove is the tool delete_file. Of directories it deletes only empty ones.
func remove(ctx context.Context, in removeArgs) (*pdk.Result, error) {
	at, err := resolve(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	if at.isRoot() {
		return nil, refuseRoot(at)
	}
	if err := os.Remove(at.full); err != nil {
		return nil, explain(at.path, err)
	}
	return pdk.Text(say(ctx, "Deleted %s.", "%s を削除しました。", at.path)).WithStructured(removeResult{true, at.path}), nil
}
