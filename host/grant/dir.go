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

// maxDir limits the path of a folder, in bytes.
const maxDir = 4096

// checkDir returns why a folder cannot be granted, or nil.
func checkDir(dir string) manifest.Text {
	switch {
	case len(dir) > maxDir:
		return bilingual("the path is longer than %d bytes", "パスが %d バイトを超えています", maxDir)
	case strings.ContainsRune(dir, 0) || !filepath.IsAbs(dir):
		return bilingual("write the whole path of a folder, such as %s", "フォルダーの絶対パスを書いてください (例: %s)",
			filepath.FromSlash("/srv/docs"))
	case slices.Contains(strings.FieldsFunc(dir, func(r rune) bool {
		return r < 0x80 &&
			os.IsPathSeparator(uint8(r))
	}), ".."):
		return bilingual(`write the path without ".."`, `パスに「..」を含めないでください`)
	}
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bilingual("there is no folder %s: create it, or name another",
			"フォルダー %s はありません。作成するか、別のフォルダーを指定してください", dir)
	case errors.As(err, &path):
		return bilingual("%s cannot be read (%v): name another folder",
			"%s を確認できません (%v)。別のフォルダーを指定してください", dir, path.Err)
	case !info.IsDir():
		return bilingual("%s is not a folder", "%s はフォルダーではありません", dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != filepath.Clean(dir) {
		return bilingual("%s leads through a symbolic link: name the folder itself, %s",
			"%s はシンボリックリンクを経由しています。フォルダー自体 (%s) を指定してください", dir, real)
	}
	return nil
}
