package main

import (
	"testing"

	"github.com/hako-run/hako/pdk/pdktest"
)

func TestSum(t *testing.T) {
	for want, in := range map[string]numbers{"5": {2, 3}, "-0.5": {0.25, -0.75}, "1000000000000": {999999999999, 1}} {
		r := pdktest.CallTool(t, "calculate_sum", in, pdktest.Options{})
		if got := r.Content[0].Text; got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}
