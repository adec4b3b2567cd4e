import io.grpc.InsecureChannelCredentials;
import umg.Umg;
import umg.v1.*;

public final class Hello {
  public static void main(String[] arguments) {
    var credentials = InsecureChannelCredentials.create();
    try (var umg = new Umg(System.getenv("UMG_ADDRESS"), System.getenv("UMG_API_KEY"), credentials)) {
      var generation = GenerationServiceGrpc.newBlockingV2Stub(umg.channel);
      var said = Umg.user("Say hello in five languages.");
      var request = GenerateRequest.newBuilder().setModel("famO-5").addMessages(said).build();
      System.out.println(Umg.text(umg.call(() -> generation.generate(request))));
    }
  }
}
