package grant

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// maxDir bounds the path of a folder, in bytes.
const maxDir = 4096

// checkDir says why a path names no folder that can be given; nil if it does.
func checkDir(dir string) manifest.Text {
	switch {
	case len(dir) > maxDir:
		return both("the path is longer than %d bytes", "パスが %d バイトを超えています", maxDir)
	case strings.ContainsRune(dir, 0) || !filepath.IsAbs(dir):
		return both("write the whole path of a folder, such as %s", "フォルダーの絶対パスを書いてください (例: %s)", filepath.FromSlash("/srv/docs"))
	case slices.Contains(strings.FieldsFunc(dir, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }), ".."):
		return both(`write the path without ".."`, `パスに「..」を含めないでください`)
	}
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return both("there is no folder %s: make the folder, or name another", "フォルダー %s はありません。作成するか、別のフォルダーを指定してください", dir)
	case errors.As(err, &path):
		return both("%s cannot be looked at (%v): name another folder", "%s を確認できません (%v)。別のフォルダーを指定してください", dir, path.Err)
	case !info.IsDir():
		return both("%s is not a folder", "%s はフォルダーではありません", dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != filepath.Clean(dir) {
		return both("%s leads through a symbolic link: name the folder itself, %s", "%s はシンボリックリンクを経由しています。フォルダー自体 (%s) を指定してください", dir, real)
	}
	return nil
}
