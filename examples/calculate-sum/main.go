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

func sum(_ context.Context, in numbers) (string, error) {
	return strconv.FormatFloat(in.A+in.B, 'f', -1, 64), nil
}
