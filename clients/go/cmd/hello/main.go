// Command hello prints a first response.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	v1 "umg.example/clients/go/gen/umg/v1"
	"umg.example/clients/go/umg"
)

func main() {
	client, err := umg.Connect(cmp.Or(os.Getenv("UMG_ADDRESS"), "127.0.0.1:50051"), os.Getenv("UMG_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	messages := []*v1.Message{umg.User("Say hello in five languages.")}
	request := &v1.GenerateRequest{Model: "famO-5", Messages: messages}
	response, err := v1.NewGenerationServiceClient(client).Generate(context.Background(), request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(umg.Text(response))
}
