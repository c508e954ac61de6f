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
	rel, full, err := resolve(in.Path)
	if err != nil {
		return nil, err
	}
	if rel == "." {
		return nil, refuse("the workspace itself cannot be deleted: name something in it",
			"ワークスペース自体は削除できません。その中のものを指定してください")
	}
	if err := os.Remove(full); err != nil {
		return nil, explain(rel, err)
	}
	return pdk.Text(say(ctx, "Deleted %s.", "%s を削除しました。", rel)).WithStructured(removeResult{true, rel}), nil
}
