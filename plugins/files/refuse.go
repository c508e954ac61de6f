package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/locale"
)

// say formats a text of a result in the caller's language; both formats get the same arguments.
func say(ctx context.Context, en, ja string, args ...any) string {
	return fmt.Sprintf(locale.Text{"en": en, "ja": ja}.In(pdk.Locale(ctx)), args...)
}

// refuse formats a failure, safe to show to a model; both formats get the same arguments.
func refuse(en, ja string, args ...any) error { return locale.Text{"en": en, "ja": ja}.Errorf(args...) }

// explanations say what an error of the mount means. The order is that of the checks.
var explanations = []struct {
	err    error
	en, ja string
}{
	{syscall.EROFS,
		"the workspace is read-only: the operator has granted reading alone, so nothing can be written, moved or deleted",
		"ワークスペースは読み取り専用です。読み取りだけが許可されているため、書き込み・移動・削除はできません"},
	{syscall.EDQUOT,
		"the workspace's quota is used up: write less, delete what is no longer needed, or ask the operator for more",
		"ワークスペースの容量の上限に達しました。内容を減らすか、不要なファイルを削除するか、管理者に上限の引き上げを依頼してください"},
	{syscall.ENOSPC,
		"the disk of the workspace is full: delete what is no longer needed",
		"ワークスペースのディスクに空きがありません。不要なファイルを削除してください"},
	{syscall.EMFILE,
		"too many files are open in this call: ask for less at once",
		"一度に開けるファイルの数を超えました。対象を減らしてください"},
	{syscall.ENAMETOOLONG,
		"the name is too long: use a shorter one",
		"名前が長すぎます。短い名前にしてください"},
	{syscall.ENOTEMPTY,
		"the directory is not empty (it may hold files that are hidden here): delete or move its contents first",
		"ディレクトリが空ではありません(ここでは見えないファイルがある場合もあります)。先に中身を削除または移動してください"},
	{syscall.ENOTDIR,
		"a part of the path is a file, not a directory: check the path with file_list",
		"パスの途中がディレクトリではなくファイルです。file_list で確認してください"},
	{syscall.EISDIR,
		"it is a directory: name a file in it",
		"ディレクトリです。その中のファイルを指定してください"},
	{syscall.ELOOP,
		"it is a symbolic link that leads in circles: name the file itself",
		"シンボリックリンクが循環しています。ファイル自体を指定してください"},
	{syscall.EPERM,
		"it leads out of the workspace through a symbolic link, which is not allowed: name a file inside the workspace",
		"シンボリックリンクがワークスペースの外を指しているため使えません。ワークスペース内のファイルを指定してください"},
	{fs.ErrExist,
		"something with this name exists already: choose another name",
		"同じ名前のものが既にあります。別の名前にしてください"},
	{fs.ErrNotExist,
		"there is no such file or directory in the workspace, or the operator has hidden it: check the path with file_list",
		"ワークスペースにそのファイルやディレクトリがないか、管理者によって隠されています。file_list で確認してください"},
	{fs.ErrPermission,
		"the workspace does not allow it: devices, files behind symbolic links, files with several hard links and executable files " +
			"cannot be changed, and directories that hold hidden files cannot be moved",
		"許可されていない操作です。デバイス、シンボリックリンクの先、複数のハードリンクを持つファイル、実行可能ファイルは変更できません。" +
			"見えないファイルを含むディレクトリは移動できません"},
}

// refuseHidden refuses a name that the operator's rules hide, whether something has it or not.
func refuseHidden(rel string) error {
	return refuse("%s: the operator's rules put this name out of reach, so it can be neither read nor written, whether it exists or not: "+
		"choose another name, or ask the operator to change what is hidden",
		"%s: この名前は管理者の設定により対象外のため、存在するかどうかにかかわらず読み書きできません。別の名前にするか、管理者に設定の変更を依頼してください", rel)
}

// explain turns an error of package os into a refusal that names the path as the caller knows it.
func explain(path string, err error) error {
	var already *locale.Error
	if errors.As(err, &already) {
		return already
	}
	for _, e := range explanations {
		if errors.Is(err, e.err) {
			return refuse("%[1]s: "+e.en, "%[1]s: "+e.ja, path)
		}
	}
	for errors.Unwrap(err) != nil { // the outer ones hold the path of the system
		err = errors.Unwrap(err)
	}
	return refuse("%s: the file system failed (%v): try again, or tell the operator",
		"%s: ファイルシステムのエラーです (%v)。再試行するか、管理者に知らせてください", path, err)
}
