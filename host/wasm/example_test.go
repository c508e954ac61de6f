package wasm_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/hako-run/hako/host/wasm"
)

// A component of Rust that adds up lists of numbers.
func Example() {
	ctx := context.Background()
	data, err := os.ReadFile("component/testdata/shapes.wasm")
	if err != nil {
		log.Fatal(err)
	}
	component, err := wasm.Load(ctx, data, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer component.Close(ctx)
	instance, err := component.Instantiate(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer instance.Close()
	sum, err := instance.Call(ctx, "sum", []any{[]any{uint64(1), uint64(2)}, []any{uint64(39)}})
	fmt.Println(sum, err)
	// Output: 42 <nil>
}
