// Command decode decodes JSON repeatedly, for measurements.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

type record struct {
	ID    int               `json:"id"`
	Name  string            `json:"name"`
	Tags  []string          `json:"tags"`
	Score float64           `json:"score"`
	Extra map[string]string `json:"extra"`
}

func main() {
	one := `{"id":7,"name":"a name of some length","tags":["x","yy","zzz"],"score":12.5,"extra":{"key":"value","other":"\u3042"}}`
	text := []byte("[" + strings.TrimSuffix(strings.Repeat(one+",", 1000), ",") + "]")
	var records []record
	start := time.Now()
	for range 20 {
		if err := json.Unmarshal(text, &records); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Println(time.Since(start).Nanoseconds())
}
