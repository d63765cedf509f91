from django.db import migrations, models

from better_compute import ComputeMigration, ComputeNow


class Migration(ComputeMigration):
    initial = True
    dependencies = [("compute", "__first__")]
    operations = [
        migrations.CreateModel(
            name="Widget",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("tenant_id", models.CharField(db_index=True, max_length=128)),
                ("created_at", models.DateTimeField(db_default=ComputeNow())),
            ],
        ),
    ]
