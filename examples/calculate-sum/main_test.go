package main

import (
	"math"
	"testing"

	"github.com/hako-run/hako/pdk/pdktest"
)

func TestSum(t *testing.T) {
	for want, in := range map[string]numbers{"5": {2, 3}, "-0.5": {0.25, -0.75}, "1000000000000": {999999999999, 1}} {
		r := pdktest.CallTool(t, "calculate_sum", in, pdktest.Options{})
		if got := r.Content[0].Text; got != want || string(r.StructuredContent) != `{"sum":`+want+`}` {
			t.Errorf("%v: got %s and %s, want %s", in, got, r.StructuredContent, want)
		}
	}
}

func TestSumTooLarge(t *testing.T) {
	if r := pdktest.CallTool(t, "calculate_sum", numbers{math.MaxFloat64, math.MaxFloat64}, pdktest.Options{}); !r.IsError {
		t.Errorf("got %+v, want an error", r)
	}
}
