import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.NetworkInterface;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.MessageDigest;

/** Fetches the URL given as argument with both clients of the JDK; the hash of each body is a line. */
public class FetchPage {
    public static void main(String[] words) throws Exception {
        System.out.println("links " + NetworkInterface.networkInterfaces().count());
        URI page = URI.create(words[0]);
        switch (words[1]) {
            case "client" -> System.out.println(hash(withClient(page)));
            case "connection" -> System.out.println(hash(withConnection(page)));
            default -> throw new IllegalArgumentException(words[1]);
        }
    }

    private static byte[] withClient(URI page) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(page).build();
        return client.send(request, HttpResponse.BodyHandlers.ofByteArray()).body();
    }

    private static byte[] withConnection(URI page) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) page.toURL().openConnection();
        try (InputStream body = connection.getInputStream()) {
            return body.readAllBytes();
        }
    }

    private static String hash(byte[] body) throws Exception {
        StringBuilder text = new StringBuilder();
        for (byte each : MessageDigest.getInstance("SHA-256").digest(body)) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }
}
