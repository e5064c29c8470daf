package schema_test

import (
	"context"
	"fmt"
	"log"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/routertest"
	"github.com/babelpool/babelpool/schema"
)

func Example() {
	schemas, err := schema.Compile(map[string]string{ // a program embeds files
		"urn:babel:orders:created": `{
			"properties": {"order_id": {"type": "integer", "minimum": 1}},
			"required": ["order_id"]
		}`,
	})
	if err != nil {
		log.Fatal(err)
	}

	// Consuming: what breaks its schema goes to the dead letters.
	mux := router.NewMux()
	mux.Use(schemas.Validate)
	mux.HandleFunc("urn:babel:orders:created", func(context.Context, *delivery.Delivery) error { return nil })
	kit := routertest.New(routertest.Config{Handler: mux})
	for _, id := range []any{1042, 0, nil} {
		fmt.Println(kit.Run(context.Background(), routertest.Message{
			URN: "urn:babel:orders:created", Data: map[string]any{"order_id": id},
		}))
	}

	// Publishing: ask before.
	fmt.Println(schemas.Check("urn:babel:orders:created", map[string]any{"id": 7}))
	// Output:
	// acked
	// dead-lettered as failed: dead-letter: schema: data breaks its schema: $.order_id: minimum: must be at least 1
	// dead-lettered as failed: dead-letter: schema: data breaks its schema: $.order_id: type: expected integer, got null
	// schema: data breaks its schema: $.order_id: required: is missing
}
