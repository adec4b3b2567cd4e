import io.grpc.InsecureChannelCredentials;
import umg.Umg;

public final class Hello {
  public static void main(String[] arguments) {
    var address = System.getenv("UMG_ADDRESS");
    try (var umg = Umg.connect(address, System.getenv("UMG_API_KEY"), InsecureChannelCredentials.create());
        var answer = umg.chat("famO-5", "Say hello in five languages.")) {
      answer.forEach(System.out::print);
    }
  }
}
