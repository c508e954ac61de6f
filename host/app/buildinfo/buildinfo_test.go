package buildinfo

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

func TestNew(t *testing.T) {
	t.Parallel()
	info := New("1.2.3")
	if info.Version != "1.2.3" || info.Go != runtime.Version() || info.ABI != abi.Version {
		t.Errorf("%+v", info)
	}
	if info := New(""); info.Version != "devel" { // tests have no version
		t.Errorf("without a version: %+v", info)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	info := Info{Version: "1.2.3", Go: "go1.26.0", System: "linux/arm64", ABI: 1}
	if got, want := info.String(), "hako 1.2.3 (guest ABI 1, go1.26.0, linux/arm64)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	got, err := json.Marshal(info)
	const want = `{"version":"1.2.3","go":"go1.26.0","system":"linux/arm64","abi":1}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
