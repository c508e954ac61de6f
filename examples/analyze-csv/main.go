// Command analyze-csv shows how a plugin reads files: with package os, below the mount that its manifest asks for.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/pdk"
)

func init() { pdk.HandleTool("analyze_csv", analyze) }

func main() {}

// mount is the path of the operator's folder in the sandbox. There is nothing else, so a path cannot lead out of it.
var mount = "/data"

type query struct {
	Filepath string `json:"filepath"`
	// Operations are all if there are none.
	Operations []string `json:"operations,omitempty"`
}

type analysis struct {
	Rows    int       `json:"rows"`
	Columns []*column `json:"columns"`
}

// column has of the operations those that were asked for; sum and average only if all its values are numbers.
type column struct {
	Name    string   `json:"name"`
	Count   *int     `json:"count,omitempty"`
	Sum     *float64 `json:"sum,omitempty"`
	Average *float64 `json:"average,omitempty"`

	values, numbers int
	total           float64
}

func analyze(_ context.Context, in query) (*analysis, error) {
	file, err := os.Open(path.Join(mount, in.Filepath))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	table := csv.NewReader(file)
	header, err := table.Read()
	if err != nil {
		return nil, fmt.Errorf("%s has no line with the names of the columns: %w", in.Filepath, err)
	}
	result := new(analysis)
	for _, name := range header {
		result.Columns = append(result.Columns, &column{Name: strings.TrimPrefix(name, "\ufeff")})
	}
	for ; ; result.Rows++ {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Filepath, err)
		}
		for i, value := range row {
			result.Columns[i].add(strings.TrimSpace(value))
		}
	}
	operations := in.Operations
	if len(operations) == 0 {
		operations = []string{"sum", "average", "count"}
	}
	for _, c := range result.Columns {
		c.finish(operations)
	}
	return result, nil
}

func (c *column) add(value string) {
	if value == "" {
		return
	}
	c.values++
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		c.numbers++
		c.total += n
	}
}

func (c *column) finish(operations []string) {
	if slices.Contains(operations, "count") {
		c.Count = &c.values
	}
	if c.numbers == 0 || c.numbers < c.values {
		return
	}
	if slices.Contains(operations, "sum") {
		c.Sum = &c.total
	}
	if slices.Contains(operations, "average") {
		c.Average = new(c.total / float64(c.numbers))
	}
}
