// Command calculate-sum is the smallest plugin: one tool that needs nothing from outside its sandbox.
package main

import (
	"context"
	"strconv"

	"github.com/hako-run/hako/pdk"
)

func init() { pdk.HandleTool("calculate_sum", sum) }

func main() {}

type numbers struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type total struct {
	Sum float64 `json:"sum"`
}

func sum(_ context.Context, in numbers) (*pdk.Result, error) {
	n := in.A + in.B
	return pdk.Text(strconv.FormatFloat(n, 'f', -1, 64)).WithStructured(total{n}), nil
}
