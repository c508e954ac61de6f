package toolschema

// Parts returns the number of objects and booleans in a decoded schema. It is at least the number of its subschemas, on
// which the memory and the time to compile it depend.
func Parts(schema any) int {
	n := 0
	switch value := schema.(type) {
	case map[string]any:
		n = 1
		for _, member := range value {
			n += Parts(member)
		}
	case []any:
		for _, element := range value {
			n += Parts(element)
		}
	case bool:
		n = 1
	}
	return n
}
