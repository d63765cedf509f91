from django.db import migrations, models
from django.db.models import Value

from better_compute import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute_iam", "0002_inbox")]

    operations = [
        migrations.AddField(
            model_name="scopedtoken",
            name="makers",
            field=models.JSONField(blank=True, db_default=Value([], output_field=models.JSONField()), default=list),
        ),
        RunSqlFile("compute_modules.iam.schema", "0003_token_makers.sql", "0003_token_makers_down.sql"),
    ]
